import { fromBase64, toBase64 } from "./base64.js";
import type { KeyValue, Type } from "./types.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Thrown for a value that is no key, and for a segment that is not the spelling of one. */
export class KeyError extends Error {
	constructor(message: string) {
		super(message);
		this.name = "KeyError";
	}
}

/**
 * Returns the one spelling of a key value as a path segment. Throws KeyError for NaN, infinities
 * and strings with lone surrogates, which are no keys.
 */
export function keySegment(value: KeyValue): string {
	switch (typeof value) {
		case "bigint":
			if (BigInt.asIntN(64, value) !== value) throw new KeyError(`${value} is no 64-bit integer`);
			return value.toString();
		case "number":
			if (!Number.isFinite(value)) throw new KeyError(`${value} is not finite`);
			return String(value + 0); // -0 is spelt as 0
		case "boolean":
			return String(value);
		case "string":
			return stringSegment(value);
		case "object":
			if (value instanceof Uint8Array) return bytesSegment(value);
			throw new KeyError("objects other than a Uint8Array are no keys");
		default:
			throw new KeyError(`values of type ${typeof value} are no keys`);
	}
}

/** The longest path and the longest track name, in bytes, that the protocol allows. */
const nameBytesMax = 4096;

/** Throws KeyError for a path or a track name that a server would refuse for its length. */
export function checkName(name: string): void {
	const { length } = encoder.encode(name);
	if (length > nameBytesMax) {
		throw new KeyError(`too long: ${name.slice(0, 40)}… takes ${length} bytes, and a server takes ${nameBytesMax}`);
	}
}

/** Returns a key, one value for each parameter of the view, as it stands in a path. */
export function joinKey(values: readonly KeyValue[]): string {
	if (values.length === 0) throw new KeyError("a key has at least one value");
	return values.map(keySegment).join("/");
}

/**
 * Returns the value that a segment spells as a parameter of this type. Every value has one
 * spelling; any other throws KeyError. Ints beyond ±(2^53−1) are bigints.
 */
export function parseKeySegment(segment: string, type: Type): KeyValue {
	const value = parse(segment, type);
	if (value === undefined || keySegment(value) !== segment) {
		throw new KeyError(`${JSON.stringify(segment)} is not the spelling of a key of type ${type}`);
	}
	return value;
}

function parse(segment: string, type: Type): KeyValue | undefined {
	switch (type) {
		case "int":
		case "timestamp": {
			if (!/^-?[0-9]{1,19}$/.test(segment) || segment === "-0") return undefined;
			const value = BigInt(segment);
			if (BigInt.asIntN(64, value) !== value) return undefined;
			const small = Number(value);
			return Number.isSafeInteger(small) ? small : value;
		}
		case "float": {
			const value = segment === "" ? Number.NaN : Number(segment);
			return Number.isFinite(value) ? value : undefined;
		}
		case "bool":
			return segment === "true" ? true : segment === "false" ? false : undefined;
		case "string":
			return parseString(segment);
		case "bytes":
			return parseBytes(segment);
		default:
			return undefined;
	}
}

function stringSegment(value: string): string {
	if (value === "") return "~";
	if (/^[A-Za-z0-9_-]+$/.test(value)) return value;
	if (/\p{Surrogate}/u.test(value)) throw new KeyError("a string with a lone surrogate is no key");
	let out = "";
	for (const byte of encoder.encode(value)) {
		const char = String.fromCharCode(byte);
		out += /[A-Za-z0-9_-]/.test(char) ? char : `~${byte.toString(16).padStart(2, "0")}`;
	}
	return out;
}

function bytesSegment(value: Uint8Array): string {
	if (value.length === 0) return "~";
	return toBase64(value).replaceAll("+", "-").replaceAll("/", "_");
}

function parseBytes(segment: string): Uint8Array | undefined {
	if (segment === "~") return new Uint8Array();
	if (/[+/]/.test(segment)) return undefined;
	return fromBase64(segment.replaceAll("-", "+").replaceAll("_", "/"));
}

function parseString(segment: string): string | undefined {
	if (segment === "~") return "";
	if (!/^(?:[A-Za-z0-9_-]|~[0-9a-f]{2})+$/.test(segment)) return undefined;
	const bytes: number[] = [];
	for (let i = 0; i < segment.length; i++) {
		if (segment[i] === "~") {
			bytes.push(Number.parseInt(segment.slice(i + 1, i + 3), 16));
			i += 2;
		} else {
			bytes.push(segment.charCodeAt(i));
		}
	}
	try {
		return decoder.decode(new Uint8Array(bytes));
	} catch {
		return undefined; // not UTF-8
	}
}
