import { fromBase64 } from "./base64.js";
import type { Cell, Closed, Column, Meta, Row, Stale, Type } from "./types.js";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Thrown for bytes that are no frame, and for rows that do not fit the view's columns. */
export class FrameError extends Error {
	constructor(message: string) {
		super(message);
		this.name = "FrameError";
	}
}

/** What a frame says about the rows of one unit: the view, a named part, or a key of a set. */
export interface Unit {
	readonly name: string;
	readonly snapshot: readonly Row[] | undefined;
	readonly insert: readonly Row[];
	readonly retract: readonly Row[];
	readonly stale: Stale | undefined;
	readonly closed: Closed | undefined;
}

/** One parsed frame. A plain view is one unit with an empty name. */
export interface Frame {
	readonly revision: number;
	readonly epoch: string;
	readonly schema: number;
	readonly last: boolean;
	readonly base: number | undefined;
	readonly units: readonly Unit[];
	readonly closed: Closed | undefined;
}

type Json = Record<string, unknown>;

/** Reads one frame. Without meta, cells are taken as they come. Throws FrameError. */
export function parseFrame(payload: Uint8Array, meta: Meta | undefined): Frame {
	const f = parseObject(payload);
	const base = f["base"] === undefined ? undefined : counter(f["base"], "base");
	const whole = unit("", f, meta?.columns);
	let units: Unit[] = [whole];
	if (f["keys"] !== undefined) {
		units = entries(f["keys"], "keys").map(([name, u]) => unit(name, u, meta?.columns));
	} else if (f["parts"] !== undefined) {
		units = entries(f["parts"], "parts").map(([name, u]) => unit(name, u, meta?.parts?.get(name)));
	}
	return {
		revision: counter(f["revision"], "revision"),
		epoch: text(f["epoch"] ?? "", "epoch"),
		schema: counter(f["schema"] ?? 0, "schema"),
		last: flag(f["last"] ?? false, "last"),
		base,
		units,
		closed: whole.closed,
	};
}

/** Reads the frame of a track `meta`. Throws FrameError. */
export function parseMeta(payload: Uint8Array): Meta {
	const m = parseObject(payload);
	const view = text(m["view"] ?? "", "view");
	if (view === "") throw new FrameError("meta without a view");
	return {
		view,
		schema: counter(m["schema"] ?? 0, "schema"),
		text: text(m["text"] ?? "", "text"),
		parameters: m["parameters"] === undefined ? [] : columns(m["parameters"]),
		columns: m["columns"] === undefined ? undefined : columns(m["columns"]),
		parts:
			m["parts"] === undefined
				? undefined
				: new Map(Object.entries(object(m["parts"], "parts")).map(([name, c]) => [name, columns(c)])),
	};
}

function parseObject(payload: Uint8Array): Json {
	let value: unknown;
	try {
		value = JSON.parse(decoder.decode(payload));
	} catch (cause) {
		throw new FrameError(`not JSON: ${cause instanceof Error ? cause.message : cause}`);
	}
	return object(value, "frame");
}

function object(value: unknown, what: string): Json {
	if (typeof value !== "object" || value === null || Array.isArray(value)) {
		throw new FrameError(`${what} is no object`);
	}
	return value as Json;
}

function array(value: unknown, what: string): unknown[] {
	if (!Array.isArray(value)) throw new FrameError(`${what} is no array`);
	return value;
}

function entries(value: unknown, what: string): [string, Json][] {
	return Object.entries(object(value, what)).map(([name, u]) => [name, object(u, what)]);
}

function counter(value: unknown, what: string): number {
	if (!Number.isSafeInteger(value) || (value as number) < 0) {
		throw new FrameError(`${what} is no integer from 0 to 2^53-1`);
	}
	return value as number;
}

function text(value: unknown, what: string): string {
	if (typeof value !== "string") throw new FrameError(`${what} is no string`);
	return value;
}

function flag(value: unknown, what: string): boolean {
	if (typeof value !== "boolean") throw new FrameError(`${what} is no bool`);
	return value;
}

const types = new Set(["int", "float", "string", "bool", "bytes", "timestamp"]);

function columns(value: unknown): Column[] {
	return array(value, "columns").map((c) => {
		const column = object(c, "column");
		const type = text(column["type"] ?? "", "type");
		return {
			name: text(column["name"] ?? "", "name"),
			type: types.has(type) ? (type as Type) : "untyped",
			nullable: flag(column["nullable"] ?? false, "nullable"),
		};
	});
}

function unit(name: string, u: Json, cols: readonly Column[] | undefined): Unit {
	return {
		name,
		snapshot: u["snapshot"] === undefined ? undefined : rows(u["snapshot"], "snapshot", cols),
		insert: u["insert"] === undefined ? [] : rows(u["insert"], "insert", cols),
		retract: u["retract"] === undefined ? [] : rows(u["retract"], "retract", cols),
		stale: u["stale"] === undefined ? undefined : stale(u["stale"]),
		closed: u["closed"] === undefined ? undefined : closed(u["closed"]),
	};
}

function rows(value: unknown, what: string, cols: readonly Column[] | undefined): Row[] {
	const out = array(value, what);
	for (let i = 0; i < out.length; i++) {
		const row = array(out[i], "row");
		if (cols !== undefined && row.length !== cols.length) {
			throw new FrameError(`a row has ${row.length} cells, the view ${cols.length} columns`);
		}
		// In place: JSON.parse made the array for us alone, and most cells stay what they are.
		for (let j = 0; j < row.length; j++) row[j] = cell(row[j], cols?.[j] ?? untyped);
	}
	return out as Row[];
}

const untyped: Column = { name: "", type: "untyped", nullable: true };

function cell(value: unknown, column: Column): Cell {
	const { type } = column;
	switch (typeof value) {
		case "number":
			if (isWhole(type) ? Number.isSafeInteger(value) : isNumeric(type) && Number.isFinite(value)) {
				return value + 0; // a -0 from elsewhere becomes 0
			}
			break;
		case "string":
			if (type === "string" || type === "untyped") return value;
			if (isWhole(type)) return largeInt(value);
			if (type === "bytes") return bytes(value);
			break;
		case "boolean":
			if (type === "bool" || type === "untyped") return value;
			break;
		default:
			if (value !== null) throw new FrameError("a cell is no number, string, bool or null");
			if (column.nullable || type === "untyped") return value;
	}
	throw new FrameError(`a cell is not of its column's type ${type}`);
}

function isWhole(type: Type): boolean {
	return type === "int" || type === "timestamp";
}

function isNumeric(type: Type): boolean {
	return type === "float" || type === "untyped";
}

function largeInt(value: string): bigint {
	if (/^-?[1-9][0-9]{15,18}$/.test(value)) {
		const n = BigInt(value);
		if (BigInt.asIntN(64, n) === n && !Number.isSafeInteger(Number(n))) return n;
	}
	throw new FrameError("a string in an int column is no int beyond ±(2^53-1)");
}

function bytes(value: string): Uint8Array {
	const out = fromBase64(value.replace(/={1,2}$/, ""));
	if (value.length % 4 !== 0 || out === undefined) {
		throw new FrameError("a string in a bytes column is not base64 with padding");
	}
	return out;
}

function stale(value: unknown): Stale {
	const s = object(value, "stale");
	return {
		code: text(s["code"] ?? "", "code"),
		message: text(s["message"] ?? "", "message"),
		...(s["rule"] === undefined ? {} : { rule: text(s["rule"], "rule") }),
		...(s["row"] === undefined ? {} : { row: rows([s["row"]], "row", undefined)[0] as Row }),
	};
}

function closed(value: unknown): Closed {
	const c = object(value, "closed");
	return { code: text(c["code"] ?? "", "code"), message: text(c["message"] ?? "", "message") };
}
