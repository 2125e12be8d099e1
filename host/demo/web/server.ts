// What the demo's own endpoints say, and the two requests that the forms make.
import type { Cell, Type } from "../../../sdk/js/src/index.js";

export interface Column {
	readonly name: string;
	readonly type: Type;
}

/** GET /demo/info: what to show. */
export interface Info {
	readonly graph: string;
	readonly view: string;
	readonly keys: readonly number[];
	/** The relation that the form writes, and its columns. */
	readonly relation: string;
	readonly columns: readonly Column[];
	readonly program: string;
}

/** GET /demo/stats: figures of the family over about the last second. */
export interface Stats {
	readonly watchedKeys: number;
	readonly viewers: number;
	readonly writesPerSecond: number;
	readonly serverCpuMicrosPerWrite: number;
	readonly revision: number;
}

/** What POST /demo/facts answers. */
export interface Receipt {
	readonly revision: number;
	readonly inserted: number;
	readonly deleted: number;
}

/** What a query answers. */
export interface Answer {
	readonly revision: number;
	readonly columns: readonly Column[];
	readonly rows: readonly (readonly Cell[])[];
	readonly truncated: boolean;
}

/** Inserts or deletes one fact, whose values are given as they were typed. */
export async function writeFact(
	op: "insert" | "delete",
	typed: string[],
	columns: readonly Column[],
): Promise<Receipt> {
	// As text, because a 64-bit integer would not survive being a number here.
	const values = typed.map((text, i) => jsonValue(text.trim(), columns[i]));
	const receipt = await post<Partial<Receipt>>("/demo/facts", `{"op":"${op}","values":[${values.join(",")}]}`);
	// A server that does not count has changed something.
	return { revision: receipt.revision ?? 0, inserted: receipt.inserted ?? 1, deleted: receipt.deleted ?? 0 };
}

/** Asks one query. */
export function askOnce(graph: string, query: string): Promise<Answer> {
	const text = query.trim();
	const body = { query: text.startsWith("?") ? text : `?${text}`, limit: 200 };
	return post<Answer>(`/v1/graphs/${encodeURIComponent(graph)}/query`, JSON.stringify(body));
}

function jsonValue(text: string, column: Column | undefined): string {
	const wrong = (what: string) => new Error(`${column?.name ?? "value"} is ${what}; “${text}” is not.`);
	switch (column?.type) {
		case "int":
			if (!/^-?(0|[1-9]\d{0,18})$/.test(text)) throw wrong("a whole number");
			return text;
		case "float":
			if (text === "" || !Number.isFinite(Number(text))) throw wrong("a number");
			return JSON.stringify(Number(text));
		case "bool":
			if (text !== "true" && text !== "false") throw wrong("true or false");
			return text;
		default:
			return JSON.stringify(text);
	}
}

async function post<T>(path: string, body: string): Promise<T> {
	const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body });
	if (response.ok) return (await response.json()) as T;
	throw new Error(await problem(response));
}

interface Problem {
	readonly title?: string;
	readonly detail?: string;
	readonly errors?: readonly { readonly text?: string; readonly message?: string; readonly line?: number }[];
}

/** The most telling text of a problem+json answer. */
async function problem(response: Response): Promise<string> {
	try {
		const p = (await response.json()) as Problem;
		const first = p.errors?.[0];
		// With a place, the text shows it with a caret; without one the message says all.
		return (first?.line ? first.text : undefined) ?? first?.message ?? p.detail ?? p.title ?? response.statusText;
	} catch {
		return `${response.status} ${response.statusText}`;
	}
}
