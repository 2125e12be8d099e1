// Calls of actions against a server made by hand: what is asked, and what answers become.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { CallError, Client, KeyError, type Receipt } from "../src/index.js";

interface Answer {
	status: number;
	body: string;
}

const receipt: Receipt = {
	revision: 9,
	inserted: 1,
	deleted: 0,
	replayed: false,
	statements: [{ rows: 1, inserted: 1, deleted: 0 }],
};

/** A server that gives one answer, and a client of it that opens no session. */
async function start(t: test.TestContext, answer: Answer, scheme = "http") {
	const requests: IncomingMessage[] = [];
	const server = createServer((request, response) => {
		requests.push(request);
		response.writeHead(answer.status).end(answer.body);
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address() as AddressInfo;
	const client = new Client(`${scheme}://127.0.0.1:${port}/some/path?x`, {
		dial: (_url, _transport, signal) =>
			new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
	});
	const close = async () => {
		server.closeAllConnections();
		await new Promise((resolve) => server.close(resolve));
	};
	t.after(async () => {
		client.close();
		await close().catch(() => {});
	});
	return { client, requests, close };
}

const ok = { status: 200, body: JSON.stringify(receipt) };

test("a call posts to the action's path and resolves to the receipt", async (t) => {
	const { client, requests } = await start(t, ok);
	assert.deepEqual(await client.call("shop", "claim", ["Jörg/M", 7, 0.5, true]), receipt);
	assert.deepEqual(await client.call("shop", "claim", 9007199254740993n), receipt);
	await client.call("shop", "tick");
	await client.call("shop", "put", [new Uint8Array([0, 255]), ""]);
	assert.deepEqual(
		requests.map((r) => `${r.method} ${r.url}`),
		[
			"POST /v1/graphs/shop/actions/claim/J~c3~b6rg~2fM/7/0.5/true",
			"POST /v1/graphs/shop/actions/claim/9007199254740993",
			"POST /v1/graphs/shop/actions/tick",
			"POST /v1/graphs/shop/actions/put/AP8/~",
		],
	);
	assert.equal(requests[0]?.headers["idempotency-key"], undefined);
});

test("options travel as header and parameter", async (t) => {
	const { client, requests } = await start(t, ok, "ws");
	await client.call("shop", "claim", 7, { idempotencyKey: "a b", expectRevision: 12n });
	await client.call("shop", "claim", 7, { expectRevision: 0 });
	assert.equal(requests[0]?.url, "/v1/graphs/shop/actions/claim/7?expect_revision=12");
	assert.equal(requests[0]?.headers["idempotency-key"], "a b");
	assert.equal(requests[1]?.url, "/v1/graphs/shop/actions/claim/7?expect_revision=0");
});

test("a refusal carries code, detail and hint", async (t) => {
	const body = JSON.stringify({ status: 409, code: "precondition_failed", detail: "it is at 8", hint: "read again" });
	const { client } = await start(t, { status: 409, body });
	await assert.rejects(client.call("shop", "claim", 7), (error) => {
		assert(error instanceof CallError);
		assert.equal(error.name, "CallError");
		assert.deepEqual(
			[error.code, error.detail, error.message, error.hint, error.status],
			["precondition_failed", "it is at 8", "it is at 8", "read again", 409],
		);
		return true;
	});
});

for (const [name, answer, code] of [
	["an error of something else", { status: 502, body: "<html>" }, "internal"],
	["an error without members", { status: 500, body: "[]" }, "internal"],
	["no receipt", { status: 200, body: "hello" }, "internal"],
	["null", { status: 200, body: "null" }, "internal"],
] as const) {
	test(`answers of other servers: ${name}`, async (t) => {
		const { client } = await start(t, answer);
		await assert.rejects(client.call("g", "a"), { name: "CallError", code, status: answer.status });
	});
}

test("no server, no answer", async (t) => {
	const { client, close } = await start(t, ok);
	await close();
	await assert.rejects(client.call("g", "a"), { name: "CallError", code: "unreachable", status: 0 });
});

test("what cannot be called", async (t) => {
	const { client, requests } = await start(t, ok);
	await assert.rejects(client.call("g", "a", Number.NaN), KeyError);
	await assert.rejects(client.call("g", "a", 1, { signal: AbortSignal.abort() }), { name: "AbortError" });
	client.close();
	await assert.rejects(client.call("g", "a", 1), /closed/);
	assert.equal(requests.length, 0);
});
