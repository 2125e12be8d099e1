/**
 * Watch keyed views of a Heddle server, in a browser or in Node (import "heddle-client/node"
 * first).
 *
 *     const client = await connect("https://heddle.example");
 *     for await (const { rows, entered, left } of client.watch("shop", "open_orders", 42)) {
 *       …
 *     }
 *     await client.call("shop", "claim", ["anna", 7]);
 *
 * @module
 */
export { CallError } from "./call.js";
export { Client, connect } from "./client.js";
export type { ClientStatus, ConnectOptions, WatchOptions } from "./client.js";
export { joinKey, KeyError, keySegment, parseKeySegment } from "./key.js";
export { compareRows } from "./order.js";
export { Watch, WatchClosedError } from "./watch.js";
export type { Part, Update, WatchEvents, WatchStatus } from "./watch.js";
export type { Transport } from "./wire.js";
export type {
	CallOptions,
	Cell,
	Closed,
	Column,
	KeyValue,
	Meta,
	Receipt,
	Row,
	Stale,
	Type,
	Waiting,
} from "./types.js";
