import { callAction } from "./call.js";
import { Feed, type FeedHost } from "./feed.js";
import { parseMeta } from "./frame.js";
import { checkName, joinKey } from "./key.js";
import { backoffMs, Gate, Pace, sleep } from "./pace.js";
import type { CallOptions, KeyValue, Meta, Receipt } from "./types.js";
import { Watch } from "./watch.js";
import { type Dial, dial, type Transport, type Wire } from "./wire.js";

/** "connecting": the first attempt or a new one after a loss; "closed": after close() only. */
export type ClientStatus = "connecting" | "connected" | "closed";

export interface ConnectOptions {
	/** Default "auto": WebTransport where there is one, with WebSocket half a second behind. */
	transport?: "auto" | Transport;
	/** For tests: how sessions are opened. */
	dial?: Dial;
}

export interface WatchOptions {
	/**
	 * How the key is reached. "track" (default) passes every relay and needs a grant for the whole
	 * view; "path" needs a grant for the key's own path only.
	 */
	via?: "track" | "path";
}

/** A server's clients subscribe so many keys at a time and close so many in each 10 ms. */
const subscribesAtOnce = 50;
const closesAtOnce = 50;
const closeIntervalMs = 10;
const dialMs = 10_000;
/** A session that lived so long was a good one: the next is opened without a growing delay. */
const goodSessionMs = 5_000;

/**
 * Connects to a Heddle server or to a relay in front of it. Resolves when the first session is
 * open and rejects if that fails; later losses are repaired in the background.
 */
export async function connect(url: string | URL, options: ConnectOptions = {}): Promise<Client> {
	const client = new Client(url, options);
	try {
		await client.ready;
	} catch (error) {
		client.close();
		throw error;
	}
	return client;
}

/** A connection that repairs itself and the watches on it. */
export class Client {
	/** Settles with the first attempt to open a session. Further attempts follow a failure. */
	readonly ready: Promise<void>;

	readonly #url: URL;
	readonly #options: ConnectOptions;
	readonly #stopped = new AbortController();
	readonly #listeners = new Set<(status: ClientStatus) => void>();
	readonly #feeds = new Map<string, Feed>();
	readonly #closes = new Pace(closesAtOnce, closeIntervalMs);
	readonly #host: FeedHost;
	#metas = new Map<string, Promise<Meta | undefined>>();
	#status: ClientStatus = "connecting";
	#wire: Wire | undefined;

	/** Begins to connect at once; use connect() to wait for it. */
	constructor(url: string | URL, options: ConnectOptions = {}) {
		this.#url = new URL(url);
		this.#options = options;
		this.#host = {
			gate: new Gate(subscribesAtOnce),
			meta: (wire, broadcast) => this.#meta(wire, broadcast),
			forgetMeta: (broadcast) => this.#metas.delete(broadcast),
			unused: (feed) => this.#unused(feed),
		};
		this.ready = new Promise((resolve, reject) => void this.#run({ resolve, reject }));
		this.ready.catch(() => {}); // nobody has to look
	}

	get status(): ClientStatus {
		return this.#status;
	}

	/** The transport of the current session, undefined while there is none. */
	get transport(): Transport | undefined {
		return this.#wire?.transport;
	}

	/** Calls fn whenever the status changes, until the returned function is called. */
	on(_event: "status", fn: (status: ClientStatus) => void): () => void {
		this.#listeners.add(fn);
		return () => this.#listeners.delete(fn);
	}

	/**
	 * Watches one key of a view: one value for each parameter. May be called at any time; the rows
	 * come when there is a session. Throws KeyError for a value that is no key, and for a key whose
	 * spelling is longer than the 4096 bytes that the protocol allows.
	 */
	watch(graph: string, view: string, key: KeyValue | readonly KeyValue[], options: WatchOptions = {}): Watch {
		if (this.#status === "closed") throw new Error("the client is closed");
		const spelling = joinKey(Array.isArray(key) ? key : [key as KeyValue]);
		const path = options.via === "path";
		const broadcast = path ? `${graph}/${view}/${spelling}` : `${graph}/${view}`;
		const track = path ? "rows" : `rows/${spelling}`;
		checkName(broadcast);
		checkName(track);
		const id = `${broadcast} ${track}`;
		let feed = this.#feeds.get(id);
		if (feed === undefined || feed.stopped) {
			feed = new Feed(this.#host, broadcast, track);
			this.#feeds.set(id, feed);
			if (this.#wire !== undefined) void feed.run(this.#wire);
		}
		const watch = new Watch(feed, graph, view, spelling);
		feed.join(watch);
		return watch;
	}

	/**
	 * Calls an action of the graph's program, with a value for each of its parameters: one
	 * transaction, durable when it resolves. It goes over HTTP and needs no session. It rejects with
	 * CallError, and with KeyError for a value that is no key.
	 */
	async call(
		graph: string,
		action: string,
		key: KeyValue | readonly KeyValue[] = [],
		options: CallOptions = {},
	): Promise<Receipt> {
		if (this.#status === "closed") throw new Error("the client is closed");
		return callAction(this.#url, graph, action, Array.isArray(key) ? key : [key as KeyValue], options);
	}

	/** Ends the session and all watches. */
	close(): void {
		if (this.#status === "closed") return;
		this.#stopped.abort();
		this.#setStatus("closed");
		for (const feed of [...this.#feeds.values()]) feed.stop({ code: "client", message: "" });
		this.#feeds.clear();
		this.#wire?.close();
	}

	async #run(first: { resolve: () => void; reject: (error: unknown) => void }): Promise<void> {
		const stopped = this.#stopped.signal;
		for (let attempt = 0; !stopped.aborted; ) {
			try {
				const wire = await this.#dial();
				if (stopped.aborted) return wire.close();
				first.resolve();
				const opened = Date.now();
				await this.#session(wire);
				if (Date.now() - opened > goodSessionMs) attempt = 0;
			} catch (error) {
				first.reject(error);
			}
			this.#setStatus("connecting");
			await sleep(backoffMs(attempt++), stopped);
		}
		first.reject(new Error("the client is closed"));
	}

	async #dial(): Promise<Wire> {
		// Not AbortSignal.any, which Node has only since 20.3 and Safari since 17.4.
		const abort = new AbortController();
		const give = () => abort.abort(new Error("the client is closed"));
		const timer = setTimeout(() => abort.abort(new Error("no session within 10 s")), dialMs);
		this.#stopped.signal.addEventListener("abort", give, { once: true });
		try {
			return await (this.#options.dial ?? dial)(this.#url, this.#options.transport ?? "auto", abort.signal);
		} finally {
			clearTimeout(timer);
			this.#stopped.signal.removeEventListener("abort", give);
		}
	}

	/** Serves one session to its end. */
	async #session(wire: Wire): Promise<void> {
		this.#wire = wire;
		this.#metas = new Map(); // another session may be another server
		this.#setStatus("connected");
		for (const feed of this.#feeds.values()) void feed.run(wire);
		await wire.closed;
		this.#wire = undefined;
	}

	#meta(wire: Wire, broadcast: string): Promise<Meta | undefined> {
		let meta = this.#metas.get(broadcast);
		if (meta === undefined) {
			meta = readMeta(wire, broadcast);
			this.#metas.set(broadcast, meta);
		}
		return meta;
	}

	#unused(feed: Feed): void {
		// Not at once: a page that closes a watch and opens it again keeps its subscription.
		this.#closes.push(() => {
			if (feed.used) return;
			const id = `${feed.broadcast} ${feed.track}`;
			if (this.#feeds.get(id) === feed) this.#feeds.delete(id);
			feed.stop({ code: "client", message: "" });
		});
	}

	#setStatus(status: ClientStatus): void {
		if (this.#status === status || this.#status === "closed") return;
		this.#status = status;
		for (const fn of [...this.#listeners]) fn(status);
	}
}

/** Reads the one frame of a track meta. A server without one is no fault; cells are then untyped. */
async function readMeta(wire: Wire, broadcast: string): Promise<Meta | undefined> {
	const track = wire.subscribe(broadcast, "meta");
	const timer = setTimeout(() => track.close(), dialMs);
	try {
		const frame = await track.read();
		return frame && parseMeta(frame.payload);
	} catch {
		return undefined;
	} finally {
		clearTimeout(timer);
		track.close();
	}
}
