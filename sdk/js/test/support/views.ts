// A small server of views for tests and for looking at the demo page: rows by key in memory, every
// change a group with the whole snapshot and what changed. It speaks moq-lite-05 over WebSocket
// with @moq/net's publishing half, so nothing here is shared with the code under test but the
// package that both stand on.
import "../../src/node.js";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import * as Moq from "@moq/net";
import Session, { selectSubprotocol } from "@moq/qmux";
import { type WebSocket, WebSocketServer } from "ws";

export type FakeRow = (number | string | boolean)[];

interface Track {
	readonly producer: Moq.Track.Producer;
}

export class FakeViews {
	revision = 1;
	readonly http: Server;
	/** Requests for rows ever served, by key: two for each subscription, TRACK and SUBSCRIBE. */
	readonly requests = new Map<string, number>();
	/** Tracks that are subscribed now. */
	readonly tracks = new Map<string, Set<Track>>();
	/** Keys that are refused. */
	readonly missing = new Set<string>();
	refused = 0;

	readonly #path: string;
	readonly #columns: { name: string; type: string }[];
	readonly #rows = new Map<string, Map<string, FakeRow>>();
	readonly #sessions = new Set<{ connection: Moq.Connection.Established; socket: WebSocket }>();
	#sequence = 1000;

	constructor(path: string, columns: { name: string; type: string }[], handler?: RequestListener) {
		this.#path = path;
		this.#columns = columns;
		this.http = createServer(handler ?? ((_q, s) => s.writeHead(404).end()));
		const sockets = new WebSocketServer({
			server: this.http,
			handleProtocols: (offered) =>
				selectSubprotocol([...offered], { protocols: ["moq-lite-05"], versions: { "moq-lite-05": null } }) ?? false,
		});
		sockets.on("connection", (socket) => void this.#session(socket).catch(() => socket.terminate()));
	}

	/** Listens on a free port of the loopback, or on the given one, and returns the server's address. */
	async listen(port = 0): Promise<string> {
		await new Promise<void>((resolve) => this.http.listen(port, "127.0.0.1", resolve));
		return `http://127.0.0.1:${(this.http.address() as AddressInfo).port}/`;
	}

	async close(): Promise<void> {
		this.drop();
		this.http.closeAllConnections();
		await new Promise((resolve) => this.http.close(resolve));
	}

	/** Cuts all sessions without a word. */
	drop(): void {
		for (const { socket } of this.#sessions) socket.terminate();
	}

	rows(key: string): FakeRow[] {
		const rows = [...(this.#rows.get(key) ?? new Map<string, FakeRow>()).values()];
		return rows.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
	}

	/** One commit that changes one key. publish false: the change is not told, as if superseded. */
	write(key: string, insert: FakeRow[], retract: FakeRow[] = [], publish = true): void {
		const base = this.revision++;
		const rows = this.#rows.get(key) ?? new Map<string, FakeRow>();
		this.#rows.set(key, rows);
		const left = retract.filter((row) => rows.delete(JSON.stringify(row)));
		const entered = insert.filter((row) => !rows.has(JSON.stringify(row)));
		for (const row of entered) rows.set(JSON.stringify(row), row);
		this.#sequence++;
		if (!publish) return;
		for (const track of this.tracks.get(key) ?? []) {
			this.#group(track, { ...this.#snapshot(key), base, insert: entered, retract: left });
		}
	}

	/** Sends a frame as it is, in a group of its own. */
	send(key: string, frame: object): void {
		this.#sequence++;
		for (const track of this.tracks.get(key) ?? []) this.#group(track, frame);
	}

	#snapshot(key: string): object {
		return { revision: this.revision, epoch: "fake", schema: 1, snapshot: this.rows(key), last: true };
	}

	#group(track: Track, frame: object): void {
		const group = new Moq.Group.Producer(this.#sequence);
		track.producer.writeGroup(group);
		group.writeJson(frame);
		group.close(); // a client grants 100 streams, and this server does not count the open ones
	}

	async #session(socket: WebSocket): Promise<void> {
		const transport = Session.accept(socket as never, { config: { maxStreamsBidi: 4096n } });
		await transport.ready;
		const connection = await Moq.Connection.accept(transport as never, new URL("http://127.0.0.1/"));
		const entry = { connection, socket };
		this.#sessions.add(entry);
		const broadcast = new Moq.Broadcast.Producer();
		connection.publish(Moq.Path.from(this.#path), broadcast);
		void this.#serve(broadcast);
		await connection.closed.catch(() => {});
		this.#sessions.delete(entry);
	}

	async #serve(broadcast: Moq.Broadcast.Producer): Promise<void> {
		for (;;) {
			const request = await broadcast.requested();
			if (request === undefined) return;
			if (request.name === "meta") {
				this.#serveMeta(request);
				continue;
			}
			const key = request.name.replace(/^rows\//, "");
			if (key === request.name || this.missing.has(key)) {
				this.refused++;
				request.reject(new Error("refused"));
				continue;
			}
			this.#serveRows(request, key);
		}
	}

	#serveMeta(request: Moq.Track.Request): void {
		const producer = request.accept({ latencyMax: 1000 });
		const view = this.#path.split("/")[1];
		producer.writeJson({ view, schema: 1, text: "view …", parameters: [], columns: this.#columns });
	}

	#serveRows(request: Moq.Track.Request, key: string): void {
		this.requests.set(key, (this.requests.get(key) ?? 0) + 1);
		const track: Track = { producer: request.accept({ latencyMax: 1000 }) };
		const tracks = this.tracks.get(key) ?? new Set();
		this.tracks.set(key, tracks.add(track));
		this.#group(track, this.#snapshot(key));
		const gone = () => {
			tracks.delete(track);
			if (tracks.size === 0 && this.tracks.get(key) === tracks) this.tracks.delete(key);
			track.producer.close();
		};
		void track.producer.unused().then(gone);
		void track.producer.closed.then(gone);
	}
}
