// Where the server is, and what its parrot tells of itself.

export const [URL, MANAGEMENT, KEY, MANAGEMENT_KEY, GRPC] = process.argv.slice(3, 8);

// How many of its requests run, and how many were cancelled.
export async function parrot() {
  const reply = await fetch(`${MANAGEMENT}/models/parrot?customized=true`, {
    headers: { Authorization: `Bearer ${MANAGEMENT_KEY}` },
  });
  return (await reply.json())[0].customizedMetadata;
}

export async function waitForCancels(count) {
  const deadline = Date.now() + 120_000;
  for (let seen; (seen = (await parrot()).cancelled) < count; ) {
    if (Date.now() > deadline) throw new Error(`${seen} requests were cancelled, not ${count}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}
