import asyncio

from openai import AsyncOpenAI
from server import KEY, URL, parrot, wait_for_cancels

STREAMS = 32


def client():
    return AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)


async def said(api, text):
    stream = await api.chat.completions.create(
        model="parrot", messages=[{"role": "user", "content": text}], stream=True
    )
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


async def check_chat():
    async with client() as api:
        reply = await api.chat.completions.create(model="parrot", messages=[{"role": "user", "content": "one two"}])
        assert reply.choices[0].message.content == "one two"
        assert await said(api, "three four") == "three four"


async def check_many_streams_at_once():
    async with client() as api:
        texts = [" ".join(f"word{n}-{k}" for k in range(40)) for n in range(STREAMS)]
        assert await asyncio.gather(*(said(api, text) for text in texts)) == texts


async def check_cancel_of_many():
    before = parrot()["cancelled"]
    async with client() as api:
        tasks = [asyncio.create_task(said(api, "hang on")) for _ in range(8)]
        while (await asyncio.to_thread(parrot))["running"] < 8:
            await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.to_thread(wait_for_cancels, before + 8)
    assert parrot()["running"] == 0


async def check_one_that_leaves_disturbs_no_other():
    async with client() as api:
        leaver = asyncio.create_task(said(api, "hang on"))
        while (await asyncio.to_thread(parrot))["running"] < 1:
            await asyncio.sleep(0.02)
        others = [asyncio.create_task(said(api, f"stay {n}")) for n in range(4)]
        leaver.cancel()
        assert await asyncio.gather(*others) == [f"stay {n}" for n in range(4)]


async def check_completions_embeddings_and_responses():
    async with client() as api:
        one, two, three = await asyncio.gather(
            api.completions.create(model="parrot", prompt=["a", "b"]),
            api.embeddings.create(model="parrot", input=["a", "bc"]),
            api.responses.create(model="parrot", input="c"),
        )
    assert [choice.text for choice in one.choices] == ["a", "b"]
    assert len(two.data) == 2
    assert three.output_text == "c"
