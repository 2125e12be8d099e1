// The client against a real server over a real WebSocket.
import assert from "node:assert/strict";
import test from "node:test";
import { FakeViews } from "./support/views.js";
import { type Client, connect, type ConnectOptions, type Update } from "../src/index.js";

console.warn = () => {}; // @moq/net tells of every refused subscription
console.debug = () => {};
console.error = () => {}; // and of every session that was cut

const columns = [
	{ name: "head", type: "int" },
	{ name: "Y", type: "int" },
];

async function withServer(run: (server: FakeViews, open: typeof connect) => Promise<void>): Promise<void> {
	const server = new FakeViews("g/hot", columns);
	const url = await server.listen();
	const clients: Client[] = [];
	const open = async (path: string | URL, options?: ConnectOptions) => {
		const client = await connect(new URL(path, url), options);
		clients.push(client);
		return client;
	};
	try {
		await run(server, open);
	} finally {
		for (const client of clients) client.close();
		await server.close();
	}
}

async function until(what: string, condition: () => boolean): Promise<void> {
	// Longer than the watchdog: a loaded machine may lose a subscription to it.
	const deadline = Date.now() + 30_000;
	while (!condition()) {
		if (Date.now() > deadline) throw new Error(`waited 30 s for: ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
}

for (const transport of ["auto", "websocket"] as const) {
	test(`snapshot and changes, transport ${transport}`, () =>
		withServer(async (server, open) => {
			server.write("4", [[4, 1]]);
			const client = await open("/", { transport });
			assert.equal(client.transport, "websocket");
			const watch = client.watch("g", "hot", 4);
			const updates: Update[] = [];
			for await (const u of watch) {
				updates.push(u);
				if (updates.length === 1) server.write("4", [[4, 2]], [[4, 1]]);
				else break;
			}
			assert.deepEqual(updates[0]?.rows, [[4, 1]]);
			assert.deepEqual(updates[0]?.entered, [[4, 1]]);
			assert.deepEqual(updates[1]?.rows, [[4, 2]]);
			assert.deepEqual([updates[1]?.entered, updates[1]?.left], [[[4, 2]], [[4, 1]]]);
			assert.equal(updates[1]?.revision, server.revision);
			assert.equal(updates[1]?.skipped, false);
			assert.deepEqual(watch.columns, columns.map((c) => ({ ...c, nullable: false })));
			client.close();
			assert.equal(watch.status, "closed");
		}));
}

test("200 keys: each gets its own changes and no others", () =>
	withServer(async (server, open) => {
		const client = await open("/");
		const watches = Array.from({ length: 200 }, (_, i) => client.watch("g", "hot", i));
		await until("200 snapshots", () => watches.every((w) => w.status === "live"));
		const before = watches.map((w) => w.frames);
		for (let i = 0; i < 200; i += 2) server.write(String(i), [[i, 7]]);
		await until("100 changes", () => watches.every((w, i) => w.rows.length === (i % 2 ? 0 : 1)));
		assert.deepEqual(
			watches.map((w, i) => w.frames - (before[i] as number)),
			watches.map((_, i) => (i % 2 ? 0 : 1)),
		);
		for (const w of watches.slice(0, 150)) w.close();
		await until("150 subscriptions ended", () => server.tracks.size === 50);
		assert.equal(client.status, "connected");
		client.close();
		await until("all subscriptions ended", () => server.tracks.size === 0);
	}));

test("watches of one key share a subscription", () =>
	withServer(async (server, open) => {
		server.write("4", [[4, 1]]);
		const client = await open("/");
		const first = client.watch("g", "hot", 4);
		await until("rows", () => first.rows.length === 1);
		const second = client.watch("g", "hot", 4);
		const seen: Update[] = [];
		second.on("update", (u) => seen.push(u));
		await until("the first update of a late watch", () => seen.length === 1);
		assert.deepEqual(seen[0]?.entered, [[4, 1]]);
		first.close();
		server.write("4", [[4, 2]]);
		await until("a change after the other has closed", () => seen.length === 2);
		assert.deepEqual(seen[1]?.entered, [[4, 2]]);
		second.close();
		const third = client.watch("g", "hot", 4); // before the close went out
		await until("the resumed watch", () => third.rows.length === 2);
		assert.equal(server.requests.get("4"), 2);
		client.close();
	}));

test("a refusal without a known code is tried again", () =>
	withServer(async (server, open) => {
		server.missing.add("9"); // JavaScript publishers refuse with code 0, as relays do
		const client = await open("/");
		const watch = client.watch("g", "hot", 9);
		await until("a refusal", () => server.refused > 0);
		assert.equal(watch.status, "waiting");
		server.missing.delete("9");
		await until("the key to be served", () => watch.status === "live");
	}));

test("a lost session is opened anew, and the rows continue exactly", () =>
	withServer(async (server, open) => {
		server.write("4", [[4, 1]]);
		const client = await open("/");
		const watch = client.watch("g", "hot", 4);
		const updates: Update[] = [];
		watch.on("update", (u) => updates.push(u));
		await until("the first rows", () => updates.length === 1);
		server.drop();
		server.write("4", [[4, 2]], [[4, 1]], false);
		await until("the rows after the loss", () => updates.length === 2);
		assert.deepEqual([updates[1]?.entered, updates[1]?.left], [[[4, 2]], [[4, 1]]]);
		assert.equal(updates[1]?.skipped, true);
		assert.equal(watch.status, "live");
		client.close();
	}));

test("reset codes: some end the watch, others are tried again", () =>
	withServer(async (server, open) => {
		const client = await open("/");
		const dropped = client.watch("g", "hot", 1);
		const shutdown = client.watch("g", "hot", 2);
		await until("both live", () => dropped.status === "live" && shutdown.status === "live");
		server.send("1", { revision: 5, epoch: "fake", schema: 1, closed: { code: "view_dropped", message: "gone" } });
		server.send("2", { revision: 5, epoch: "fake", schema: 1, closed: { code: "shutdown", message: "" } });
		await until("the dropped view's watch to end", () => dropped.status === "closed");
		assert.deepEqual(dropped.closed, { code: "view_dropped", message: "gone" });
	await until("the other to come back", () => shutdown.frames === 3 && shutdown.status === "live");
		client.close();
	}));

test("connect rejects when nobody listens", async () => {
	const server = new FakeViews("g/hot", columns);
	const url = await server.listen();
	await server.close();
	await assert.rejects(connect(url));
});
