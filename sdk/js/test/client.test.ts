// The client against sessions made by hand: codes, limits, gaps and timing without a network.
import assert from "node:assert/strict";
import test from "node:test";
import { Client, KeyError, type Update, type Waiting, WatchClosedError } from "../src/index.js";
import { backoffMs } from "../src/pace.js";
import { type Wire, WireError, type WireFrame, type WireTrack } from "../src/wire.js";

const encoder = new TextEncoder();
const meta = {
	view: "hot",
	schema: 1,
	text: "",
	parameters: [{ name: "head", type: "int" }],
	columns: [{ name: "n", type: "int" }],
};

/** One subscription, fed by the test. */
class FakeTrack implements WireTrack {
	closed = false;
	readonly #queue: (WireFrame | WireError | undefined)[] = [];
	#wake = () => {};

	constructor(readonly broadcast: string, readonly name: string) {}

	async read(): Promise<WireFrame | undefined> {
		while (this.#queue.length === 0 && !this.closed) await new Promise<void>((r) => (this.#wake = r));
		const next = this.#queue.shift();
		if (next instanceof WireError) throw next;
		return next;
	}

	close(): void {
		this.closed = true;
		this.#wake();
	}

	send(group: number, frame: object, index = 0): void {
		this.#queue.push({ group, frame: index, payload: encoder.encode(JSON.stringify(frame)) });
		this.#wake();
	}

	reset(code: number): void {
		this.#queue.push(new WireError(code, `code ${code}`));
		this.#wake();
	}
}

class FakeWire implements Wire {
	readonly transport = "webtransport";
	readonly tracks: FakeTrack[] = [];
	lose = () => {};
	readonly closed = new Promise<void>((resolve) => (this.lose = resolve));

	subscribe(broadcast: string, track: string): FakeTrack {
		const t = new FakeTrack(broadcast, track);
		this.tracks.push(t);
		if (track === "meta") t.send(0, meta);
		return t;
	}

	close(): void {
		this.lose();
	}

	rows(): FakeTrack[] {
		return this.tracks.filter((t) => t.name !== "meta");
	}
}

/** A client, the sessions that it opened so far, and a way to let everything that waits go on. */
async function start(t: test.TestContext) {
	t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
	const wires: FakeWire[] = [];
	const client = new Client("http://127.0.0.1/", {
		dial: async () => {
			const wire = new FakeWire();
			wires.push(wire);
			return wire;
		},
	});
	const pass = async (ms: number) => {
		for (let left = ms; ; left -= 10) {
			for (let i = 0; i < 30; i++) await Promise.resolve();
			if (left <= 0) return;
			t.mock.timers.tick(Math.min(10, left));
		}
	};
	t.after(() => client.close());
	await pass(0);
	return { client, wires, pass };
}

const snapshot = (revision: number, rows: number[], more: object = {}) => ({
	revision,
	epoch: "e",
	schema: 1,
	snapshot: rows.map((n) => [n]),
	last: true,
	...more,
});

test("both ways to a key", async (t) => {
	const { client, wires, pass } = await start(t);
	client.watch("g", "hot", [4, "a/b"]);
	client.watch("g", "hot", [4, "a/b"], { via: "path" });
	await pass(0);
	assert.deepEqual(
		wires[0]?.tracks.map((x) => `${x.broadcast} ${x.name}`).sort(),
		["g/hot meta", "g/hot rows/4/a~2fb", "g/hot/4/a~2fb meta", "g/hot/4/a~2fb rows"],
	);
});

test("at most 50 keys are being subscribed at a time", async (t) => {
	const { client, wires, pass } = await start(t);
	for (let i = 0; i < 120; i++) client.watch("g", "hot", i);
	await pass(0);
	const wire = wires[0] as FakeWire;
	assert.equal(wire.rows().length, 50);
	for (const track of wire.rows().slice(0, 20)) track.send(1, snapshot(1, []));
	await pass(0);
	assert.equal(wire.rows().length, 70);
	wire.rows()[30]?.reset(13); // one that fails gives its place up as well
	await pass(0);
	assert.equal(wire.rows().length, 71);
	await pass(10_100); // and so do those that never get an answer
	assert.equal(new Set(wire.rows().map((x) => x.name)).size, 120);
});

test("50 subscriptions are ended per 10 ms", async (t) => {
	const { client, wires, pass } = await start(t);
	const watches = Array.from({ length: 120 }, (_, i) => client.watch("g", "hot", i));
	for (let i = 0; i < 3; i++) {
		await pass(0);
		for (const track of (wires[0] as FakeWire).rows()) track.send(1, snapshot(1, []));
	}
	await pass(0);
	for (const watch of watches) watch.close();
	const open = () => (wires[0] as FakeWire).rows().filter((x) => !x.closed).length;
	t.mock.timers.tick(0);
	await pass(0);
	assert.equal(open(), 70);
	t.mock.timers.tick(9);
	await pass(0);
	assert.equal(open(), 70);
	t.mock.timers.tick(1);
	await pass(0);
	assert.equal(open(), 20);
	await pass(10);
	assert.equal(open(), 0);
});

const finalCodes = [[6, "unauthorized"], [13, "not_found"], [64, "view_dropped"], [66, "token_expired"]] as const;

for (const [code, name] of finalCodes) {
	test(`code ${code} ends the watch as ${name}`, async (t) => {
		const { client, wires, pass } = await start(t);
		const watch = client.watch("g", "hot", 1);
		const closed: string[] = [];
		watch.on("closed", (c) => closed.push(c.code));
		const loop = assert.rejects(
			async () => {
				for await (const _ of watch) assert.fail("an update");
			},
			(error) => error instanceof WatchClosedError && error.code === name,
		);
		await pass(0);
		wires[0]?.rows()[0]?.reset(code);
		await pass(0);
		await loop;
		assert.deepEqual(closed, [name]);
		await pass(20_000);
		assert.equal(wires[0]?.rows().length, 1);
		// Somebody who asks later is asked for anew.
		client.watch("g", "hot", 1);
		await pass(0);
		assert.equal(wires[0]?.rows().length, 2);
	});
}

for (const code of [0, 3, 30, 67, 68, 69, 12345]) {
	test(`code ${code} is tried again, later and later`, async (t) => {
		const { client, wires, pass } = await start(t);
		const watch = client.watch("g", "hot", 1);
		await pass(0);
		const wire = wires[0] as FakeWire;
		const gaps: number[] = [];
		for (let i = 0; i < 6; i++) {
			wire.rows().at(-1)?.reset(code);
			const from = Date.now();
			const n = wire.rows().length;
			while (wire.rows().length === n) await pass(10);
			gaps.push(Date.now() - from);
		}
		assert.ok((gaps[5] as number) > 4 * (gaps[0] as number), `${gaps}`);
		assert.equal(watch.status, "waiting");
		wire.rows().at(-1)?.send(1, snapshot(1, [7]));
		await pass(0);
		assert.equal(watch.status, "live");
		assert.deepEqual(watch.rows, [[7]]);
	});
}

test("a key over the session's limit says why it waits", async (t) => {
	const { client, wires, pass } = await start(t);
	const watch = client.watch("g", "hot", 1);
	const told: Waiting[] = [];
	watch.on("waiting", (w) => told.push(w));
	const reason = () => watch.waiting;
	await pass(0);
	assert.equal(reason(), undefined);
	const wire = wires[0] as FakeWire;
	wire.rows()[0]?.reset(67);
	await pass(300);
	assert.deepEqual([watch.status, reason()?.code, reason()?.retries], ["waiting", "busy", 1]);
	assert.match(reason()?.message ?? "", /limit of keys/);
	await pass(10_100); // no answer at all is a reason as well
	assert.deepEqual(told.map((w) => [w.code, w.retries]), [["busy", 1], ["silent", 2]]);
	await pass(500);
	wire.rows().at(-1)?.send(1, snapshot(1, [7]));
	await pass(0);
	assert.deepEqual([watch.status, reason()], ["live", undefined]);
	wire.lose();
	await pass(0);
	assert.deepEqual([watch.status, reason()?.code], ["waiting", "lost"]);
	client.close();
	assert.equal(reason(), undefined);
});

test("a key that is too long to be asked for is refused at once", async (t) => {
	const { client } = await start(t);
	assert.throws(
		() => client.watch("g", "hot", "a".repeat(70_000)),
		(error) => error instanceof KeyError && /takes 70005 bytes, and a server takes 4096/.test(error.message),
	);
	assert.throws(() => client.watch("g", "hot", "é".repeat(700)), KeyError); // six characters each
	assert.throws(() => client.watch("g".repeat(4096), "hot", 1), KeyError);
	const longest = "a".repeat(4096 - "rows/".length);
	client.watch("g", "hot", longest);
	client.watch("g", "hot", "a".repeat(4096 - "g/hot/".length), { via: "path" });
	assert.throws(() => client.watch("g", "hot", longest, { via: "path" }), KeyError);
});

test("a view whose columns changed is subscribed again with new types", async (t) => {
	const { client, wires, pass } = await start(t);
	const watch = client.watch("g", "hot", 1);
	await pass(0);
	const wire = wires[0] as FakeWire;
	wire.rows()[0]?.send(1, snapshot(1, [7]));
	await pass(0);
	wire.rows()[0]?.reset(65);
	await pass(60);
	assert.equal(wire.tracks.filter((x) => x.name === "meta").length, 2);
	wire.rows()[1]?.send(2, snapshot(2, [8]));
	await pass(0);
	assert.deepEqual(watch.rows, [[8]]);
	assert.equal(watch.closed, undefined);
});

test("a gap that no newer group heals is asked for again", async (t) => {
	const { client, wires, pass } = await start(t);
	const watch = client.watch("g", "hot", 1);
	await pass(0);
	const wire = wires[0] as FakeWire;
	wire.rows()[0]?.send(1, snapshot(1, [1]));
	wire.rows()[0]?.send(1, { revision: 4, epoch: "e", base: 3, insert: [[4]] }, 3);
	await pass(900);
	assert.equal(wire.rows().length, 1);
	assert.deepEqual([watch.rows, watch.revision], [[[1]], 1]);
	await pass(200);
	assert.equal(wire.rows().length, 2);
	wire.rows()[1]?.send(1, snapshot(1, [1]));
	wire.rows()[1]?.send(1, { revision: 4, epoch: "e", base: 1, insert: [[4]] }, 1);
	await pass(2_000);
	assert.deepEqual([watch.rows, watch.revision], [[[1], [4]], 4]);
	assert.equal(wire.rows().length, 2);
});

test("a malformed frame does no harm: the key is asked for again", async (t) => {
	const { client, wires, pass } = await start(t);
	const watch = client.watch("g", "hot", 1);
	await pass(0);
	const wire = wires[0] as FakeWire;
	wire.rows()[0]?.send(1, snapshot(1, [1]));
	wire.rows()[0]?.send(2, { revision: 2, snapshot: [["no int"]], last: true });
	await pass(300);
	assert.deepEqual([watch.rows, watch.status], [[[1]], "waiting"]);
	wire.rows()[1]?.send(3, snapshot(3, [3]));
	await pass(0);
	assert.deepEqual(watch.rows, [[3]]);
});

test("a slow loop sees fewer, larger updates that add up", async (t) => {
	const { client, wires, pass } = await start(t);
	const watch = client.watch("g", "hot", 1);
	const all: Update[] = [];
	watch.on("update", (u) => all.push(u));
	await pass(0);
	const track = wires[0]?.rows()[0] as FakeTrack;
	const loop = watch[Symbol.asyncIterator]();
	track.send(1, snapshot(1, [1]));
	await pass(0);
	const first = (await loop.next()).value as Update;
	assert.deepEqual([first.entered, first.left], [[[1]], []]);
	track.send(2, snapshot(2, [1, 2], { base: 1, insert: [[2]] }));
	track.send(3, snapshot(3, [1, 2, 3], { base: 2, insert: [[3]] }));
	track.send(4, snapshot(4, [2, 3], { base: 3, insert: [], retract: [[1]] }));
	await pass(0);
	const second = (await loop.next()).value as Update;
	assert.deepEqual([second.entered, second.left, second.revision, second.skipped], [[[2], [3]], [[1]], 4, true]);
	assert.deepEqual(all.map((u) => u.revision), [1, 2, 3, 4]);
	const last = loop.next();
	watch.close();
	assert.equal((await last).done, true);
});

test("a lost session: rows stay, the next one continues", async (t) => {
	const { client, wires, pass } = await start(t);
	const watch = client.watch("g", "hot", 1);
	const status: string[] = [];
	watch.on("status", (s) => status.push(s));
	client.on("status", (s) => status.push(`client ${s}`));
	await pass(0);
	wires[0]?.rows()[0]?.send(1, snapshot(1, [1]));
	await pass(0);
	wires[0]?.lose();
	await pass(0);
	assert.deepEqual([watch.rows, watch.status, client.transport], [[[1]], "waiting", undefined]);
	await pass(300);
	assert.equal(wires.length, 2);
	wires[0]?.rows()[0]?.send(9, snapshot(9, [9])); // the old session has no say any more
	wires[1]?.rows()[0]?.send(2, snapshot(2, [2]));
	await pass(0);
	assert.deepEqual([watch.rows, watch.status], [[[2]], "live"]);
	assert.deepEqual(status, ["live", "waiting", "client connecting", "client connected", "live"]);
	client.close();
	assert.equal(watch.status, "closed");
	assert.throws(() => client.watch("g", "hot", 1));
});

test("a callback that throws harms nobody else", async (t) => {
	const { client, wires, pass } = await start(t);
	const watch = client.watch("g", "hot", 1);
	const thrown: unknown[] = [];
	const queue = t.mock.method(globalThis, "queueMicrotask", (fn: () => void) => {
		try {
			fn();
		} catch (error) {
			thrown.push(error);
		}
	});
	watch.on("update", () => {
		throw new Error("mine");
	});
	let seen = 0;
	watch.on("update", () => seen++);
	await pass(0);
	wires[0]?.rows()[0]?.send(1, snapshot(1, [1]));
	await pass(0);
	queue.mock.restore();
	assert.equal(seen, 1);
	assert.equal(thrown.length, 1);
});

test("delays double, are jittered and bounded", () => {
	for (let attempt = 0; attempt < 40; attempt++) {
		const full = Math.min(10_000, 200 * 2 ** attempt);
		const delay = backoffMs(attempt);
		assert.ok(delay >= full / 2 && delay <= full, `attempt ${attempt}: ${delay}`);
	}
});

test("named parts: one update for all, at one revision", async (t) => {
	const { client, wires, pass } = await start(t);
	const watch = client.watch("g", "page", 7);
	const heard: Update[] = [];
	watch.on("update", (u) => heard.push(u));
	await pass(0);
	const track = (wires[0] as FakeWire).rows()[0] as FakeTrack;
	const send = async (group: number, revision: number, parts: object, more: object) => {
		track.send(group, { revision, epoch: "e", schema: 1, parts, ...more });
		await pass(0);
	};
	const told = (u: Update | undefined) =>
		[...(u?.parts ?? [])].map(([name, p]) => [name, p.rows, p.entered, p.left, p.stale?.code]);

	await send(1, 1, { a: { snapshot: [[1], [2]] }, b: { snapshot: [] } }, { last: true });
	assert.deepEqual(told(heard[0]), [["a", [[1], [2]], [[1], [2]], [], undefined], ["b", [], [], [], undefined]]);
	assert.deepEqual([heard[0]?.rows, [...watch.parts.keys()]], [[], ["a", "b"]]);

	const loop = watch[Symbol.asyncIterator]();
	const first = await loop.next();
	assert.deepEqual(told(first.value as Update), told(heard[0]));

	track.send(1, { revision: 2, epoch: "e", schema: 1, parts: { b: { insert: [[9]] } }, base: 1 }, 1);
	await pass(0);
	assert.deepEqual(told(heard[1]), [["a", [[1], [2]], [], [], undefined], ["b", [[9]], [[9]], [], undefined]]);

	const stale = { code: "incomplete", message: "x" };
	track.send(1, { revision: 3, epoch: "e", schema: 1, parts: { a: { insert: [[3]], retract: [[1]], stale } }, base: 2 }, 2);
	await pass(0);
	assert.deepEqual(told(heard[2]), [["a", [[2], [3]], [[3]], [[1]], "incomplete"], ["b", [[9]], [], [], undefined]]);

	// The loop did not keep up: one difference.
	const both = await loop.next();
	assert.deepEqual(told(both.value as Update), [["a", [[2], [3]], [[3]], [[1]], "incomplete"], ["b", [[9]], [[9]], [], undefined]]);

	// A part that is gone leaves with its rows.
	await send(2, 4, { a: { snapshot: [[2], [3]] } }, { last: true });
	assert.deepEqual(told(heard[3]), [["a", [[2], [3]], [], [], undefined], ["b", [], [], [[9]], undefined]]);
	assert.deepEqual([...watch.parts], [["a", [[2], [3]]]]);
	watch.close();
});
