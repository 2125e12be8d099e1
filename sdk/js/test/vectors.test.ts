// The vectors of sdk/frame, read by the JavaScript side.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { FrameError, parseFrame, parseMeta } from "../src/frame.js";
import { joinKey, KeyError, keySegment, parseKeySegment } from "../src/key.js";
import { State } from "../src/state.js";
import type { Change } from "../src/state.js";
import type { Cell, KeyValue, Meta, Row, Type } from "../src/types.js";

const testdata = new URL("../../../frame/testdata/", import.meta.url);
const encoder = new TextEncoder();

function read(name: string): any {
	return JSON.parse(readFileSync(new URL(name, testdata), "utf8"));
}

test("keys", async (t) => {
	const vectors = read("keys.json");
	for (const v of vectors.valid as { type: Type; value: KeyValue; segment: string }[]) {
		await t.test(`${v.type} ${v.segment}`, () => {
			let want = v.value;
			if (v.type === "bytes") want = new Uint8Array(Buffer.from(v.value as string, "base64"));
			if (v.type === "int" || v.type === "timestamp") {
				const exact = BigInt(v.value as string);
				want = Number.isSafeInteger(Number(exact)) ? Number(exact) : exact;
				assert.equal(keySegment(exact), v.segment);
			}
			assert.equal(keySegment(want), v.segment);
			assert.deepEqual(parseKeySegment(v.segment, v.type), want);
		});
	}
	for (const v of vectors.invalid as { type: Type; segment: string; why: string }[]) {
		await t.test(`${v.type} ${JSON.stringify(v.segment)}: ${v.why}`, () => {
			assert.throws(() => parseKeySegment(v.segment, v.type), KeyError);
		});
	}
	await t.test("values that are no keys", () => {
		for (const v of [Number.NaN, Number.POSITIVE_INFINITY, "\ud800", 1n << 63n, -(1n << 63n) - 1n, null, {}, new Date(0)]) {
			assert.throws(() => keySegment(v as KeyValue), KeyError);
		}
		assert.throws(() => joinKey([]), KeyError);
		assert.equal(joinKey([7, "a/b", true, 1.5, "", -0]), "7/a~2fb/true/1.5/~/0");
	});
});

for (const file of readdirSync(new URL("frames/", testdata))) {
	test(`frames ${file}`, () => {
		const vector = read(`frames/${file}`);
		const meta = vector.meta === null ? undefined : parseMeta(encoder.encode(JSON.stringify(vector.meta)));
		const state = new State();
		for (const [i, step] of (vector.steps as any[]).entries()) {
			const payload = encoder.encode(step.text ?? JSON.stringify(step.frame));
			assert.deepEqual(seen(state, meta, step, payload), step.want, `step ${i}: ${step.note ?? ""}`);
		}
	});
}

/** Applies a frame and returns what the vectors compare, members with nothing to say left out. */
function seen(state: State, meta: Meta | undefined, step: any, payload: Uint8Array): unknown {
	let change: Change;
	try {
		change = state.apply(step.group, step.index, parseFrame(payload, meta));
	} catch (error) {
		if (error instanceof FrameError) return { outcome: "error" };
		throw error;
	}
	const out: any = { outcome: change.outcome, revision: state.revision };
	if (change.skipped) out.skipped = true;
	for (const u of change.units) {
		const unit: any = { ...some("entered", u.entered), ...some("left", u.left) };
		if (u.name === "") {
			Object.assign(out, unit);
			continue;
		}
		if (u.removed) unit.removed = true;
		if (u.closed !== undefined) unit.closed = u.closed;
		out.units = { ...out.units, [u.name]: unit };
	}
	if (change.closed !== undefined) out.closed = change.closed;
	out.state = {};
	for (const name of state.names) {
		const stale = state.stale(name);
		out.state[name] = { ...some("rows", state.rows(name)), ...(stale === undefined ? {} : { stale }) };
	}
	return out;
}

function some(name: string, rows: readonly Row[]): object {
	return rows.length === 0 ? {} : { [name]: rows.map((row) => row.map(wire)) };
}

/** A cell as the wire has it: ints beyond ±(2^53−1) as strings, bytes in base64. */
function wire(cell: Cell): unknown {
	if (cell instanceof Uint8Array) return Buffer.from(cell).toString("base64");
	return typeof cell === "bigint" ? cell.toString() : cell;
}
