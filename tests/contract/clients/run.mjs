// Runs the checks of files with the real clients in them; prints their names and errors ("" is well) as JSON.
//
// node run.mjs FILE,FILE… URL MANAGEMENT_URL KEY MANAGEMENT_KEY GRPC_ADDRESS

const LIMIT = 60_000; // milliseconds for one check

async function outcome(check) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done in ${LIMIT} ms`)), LIMIT);
  });
  try {
    await Promise.race([check(), late]);
    return "";
  } catch (error) {
    return String(error?.stack ?? error);
  } finally {
    clearTimeout(timer);
  }
}

async function outcomes(name) {
  const checks = Object.entries(await import(`./${name}.mjs`)).filter(([of]) => of.startsWith("check_"));
  const found = {};
  for (const [of, check] of checks) found[of] = await outcome(check);
  return found;
}

const found = {};
for (const name of process.argv[2].split(",")) found[name] = await outcomes(name);
process.stdout.write(`${JSON.stringify(found)}\n`, () => process.exit(0)); // connections that clients keep do not hold it
