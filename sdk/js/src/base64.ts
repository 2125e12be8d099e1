const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Returns base64 of RFC 4648 without padding. */
export function toBase64(bytes: Uint8Array): string {
	let out = "";
	for (let i = 0; i < bytes.length; i += 3) {
		const left = bytes.length - i;
		const n = ((bytes[i] as number) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
		out += at(n >> 18) + at(n >> 12);
		if (left > 1) out += at(n >> 6);
		if (left > 2) out += at(n);
	}
	return out;
}

function at(index: number): string {
	return alphabet[index & 63] as string;
}

/** Returns the bytes that base64 without padding spells, undefined if it is not the one spelling of any. */
export function fromBase64(text: string): Uint8Array | undefined {
	const out = new Uint8Array(Math.floor((text.length * 3) / 4));
	let n = 0;
	let bits = 0;
	let to = 0;
	for (const c of text) {
		const digit = alphabet.indexOf(c);
		if (digit < 0) return undefined;
		n = ((n << 6) | digit) & 0xffff;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[to++] = n >> bits;
		}
	}
	const unused = n & ((1 << bits) - 1);
	return bits < 6 && unused === 0 ? out : undefined;
}

/** Compares byte by byte; a shorter one comes before its extensions. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
	const n = Math.min(a.length, b.length);
	for (let i = 0; i < n; i++) {
		const c = (a[i] as number) - (b[i] as number);
		if (c !== 0) return c;
	}
	return a.length - b.length;
}
