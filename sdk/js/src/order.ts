import { compareBytes } from "./base64.js";
import type { Cell, Row } from "./types.js";

const ranks: Record<string, number> = { number: 0, bigint: 0, string: 1, boolean: 2, object: 3 };

/**
 * Orders rows as snapshots do: cell by cell, null first, numbers by magnitude, strings by their
 * UTF-8 bytes, bytes by bytes, false before true.
 */
export function compareRows(a: Row, b: Row): number {
	const n = Math.min(a.length, b.length);
	for (let i = 0; i < n; i++) {
		const c = compareCells(a[i] as Cell, b[i] as Cell);
		if (c !== 0) return c;
	}
	return a.length - b.length;
}

function compareCells(a: Cell, b: Cell): number {
	if (a === b) return 0;
	if (a === null || b === null) return a === null ? -1 : 1;
	if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b);
	if (typeof a === "string" && typeof b === "string") return compareText(a, b);
	const rank = (ranks[typeof a] as number) - (ranks[typeof b] as number);
	if (rank !== 0) return rank;
	return a < b ? -1 : a > b ? 1 : 0;
}

/** Compares by code points, which is the order of UTF-8 bytes but not of UTF-16 units. */
function compareText(a: string, b: string): number {
	const n = Math.min(a.length, b.length);
	for (let i = 0; i < n; i++) {
		const x = a.charCodeAt(i);
		const y = b.charCodeAt(i);
		if (x !== y) return codePointRank(x) - codePointRank(y);
	}
	return a.length - b.length;
}

/** Moves surrogates, which stand for the largest code points, behind all other units. */
function codePointRank(unit: number): number {
	if (unit < 0xd800) return unit;
	return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** Returns rows in order and without duplicates; rows itself if it is so already. */
export function sortedRows(rows: readonly Row[]): readonly Row[] {
	for (let i = 1; i < rows.length; i++) {
		if (compareRows(rows[i - 1] as Row, rows[i] as Row) >= 0) {
			const sorted = [...rows].sort(compareRows);
			return sorted.filter((row, at) => at === 0 || compareRows(sorted[at - 1] as Row, row) !== 0);
		}
	}
	return rows;
}

/** Returns the rows that entered and left between two sorted sets. */
export function difference(before: readonly Row[], after: readonly Row[]): { entered: Row[]; left: Row[] } {
	const entered: Row[] = [];
	const left: Row[] = [];
	let i = 0;
	let j = 0;
	while (i < before.length && j < after.length) {
		const c = compareRows(before[i] as Row, after[j] as Row);
		if (c < 0) left.push(before[i++] as Row);
		else if (c > 0) entered.push(after[j++] as Row);
		else {
			i++;
			j++;
		}
	}
	for (; i < before.length; i++) left.push(before[i] as Row);
	for (; j < after.length; j++) entered.push(after[j] as Row);
	return { entered, left };
}

/**
 * Returns sorted rows without retract and with insert, or undefined if a retracted row is not
 * there or an inserted one is. rows itself stays as it is.
 */
export function patchedRows(
	rows: readonly Row[],
	insert: readonly Row[],
	retract: readonly Row[],
): readonly Row[] | undefined {
	let out = rows;
	if (retract.length > 0) {
		const kept: Row[] = [];
		let from = 0;
		for (const row of retract) {
			const at = search(rows, row, from);
			if (at < 0) return undefined;
			while (from < at) kept.push(rows[from++] as Row);
			from = at + 1;
		}
		while (from < rows.length) kept.push(rows[from++] as Row);
		out = kept;
	}
	if (insert.length > 0) {
		const grown: Row[] = [];
		let from = 0;
		for (const row of insert) {
			const at = search(out, row, from);
			if (at >= 0) return undefined;
			while (from < -at - 1) grown.push(out[from++] as Row);
			grown.push(row);
		}
		while (from < out.length) grown.push(out[from++] as Row);
		out = grown;
	}
	return out;
}

/** Returns the index of row at or behind from, or −1 − the index at which it would stand. */
function search(rows: readonly Row[], row: Row, from: number): number {
	let low = from;
	let high = rows.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		const c = compareRows(rows[middle] as Row, row);
		if (c === 0) return middle;
		if (c < 0) low = middle + 1;
		else high = middle;
	}
	return -low - 1;
}
