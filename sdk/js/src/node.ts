/**
 * Gives Node what @moq/net needs of a browser: a WebSocket (of the package ws) and two functions
 * that Node 20 lacks. Import it before anything else of this package.
 *
 * @module
 */
import { WebSocket } from "ws";

const scope = globalThis as { WebSocket?: unknown };
scope.WebSocket ??= WebSocket;

const promise = Promise as { withResolvers?: unknown };
promise.withResolvers ??= function withResolvers<T>() {
	let resolve: unknown;
	let reject: unknown;
	const promise = new Promise<T>((a, b) => {
		resolve = a;
		reject = b;
	});
	return { promise, resolve, reject };
};

const set = Set.prototype as { difference?: unknown };
set.difference ??= function difference<T>(this: Set<T>, other: ReadonlySet<T>): Set<T> {
	return new Set([...this].filter((item) => !other.has(item)));
};
