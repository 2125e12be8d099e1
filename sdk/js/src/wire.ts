import * as Moq from "@moq/net";
import Session from "@moq/qmux";

/** The transport in use: QUIC (WebTransport), or its streams over a WebSocket. */
export type Transport = "webtransport" | "websocket";

/** One session, as far as the client needs it. Tests bring their own. */
export interface Wire {
	readonly transport: Transport;
	/** Settles when the session has ended, for whatever reason. Never rejects. */
	readonly closed: Promise<void>;
	subscribe(broadcast: string, track: string): WireTrack;
	close(): void;
}

/** One subscription. */
export interface WireTrack {
	/**
	 * Resolves to the next frame, newest group first, and to undefined when the track or the
	 * session has ended. Rejects with WireError when the peer refused or reset it.
	 */
	read(): Promise<WireFrame | undefined>;
	close(): void;
}

export interface WireFrame {
	readonly group: number;
	readonly frame: number;
	readonly payload: Uint8Array;
}

/** A subscription that the peer refused or reset, or that failed underneath (no code). */
export class WireError extends Error {
	readonly code: number | undefined;
	constructor(code: number | undefined, message: string) {
		super(message);
		this.name = "WireError";
		this.code = code;
	}
}

/** Opens a session. Aborting the signal gives up. */
export type Dial = (url: URL, transport: "auto" | Transport, signal: AbortSignal) => Promise<Wire>;

const protocol = "moq-lite-05";

/** Opens a session with @moq/net. "auto" gives WebTransport half a second before it tries WebSocket too. */
export const dial: Dial = async (url, transport, signal) => {
	if (transport === "websocket") {
		const session = new Session(url, { protocols: [protocol], versions: { [protocol]: null } });
		const abort = () => session.close();
		signal.addEventListener("abort", abort, { once: true });
		try {
			await session.ready;
			return wire(await Moq.Connection.connect(url, { transport: session, signal }));
		} finally {
			signal.removeEventListener("abort", abort);
		}
	}
	const websocket = { enabled: transport === "auto" };
	return wire(await Moq.Connection.connect(url, { webtransport: { protocols: [protocol] }, websocket, signal }));
};

function wire(connection: Moq.Connection.Established): Wire {
	return {
		transport: connection.transport,
		closed: connection.closed.catch(() => {}),
		subscribe: (broadcast, track) => subscribe(connection, broadcast, track),
		close: () => connection.close(),
	};
}

function subscribe(connection: Moq.Connection.Established, path: string, name: string): WireTrack {
	// The package counts handles per path; the last one closed ends the broadcast.
	const broadcast = connection.consume(Moq.Path.from(path));
	const track = broadcast.track(name).subscribe();
	return {
		async read() {
			for (;;) {
				try {
					// Not nextGroup: that waits for the lowest open group, so one late group delays all.
					return await track.readFrameSequence();
				} catch (error) {
					if (error instanceof Error && error.name === "Lagged") continue; // the index tells what is missing
					throw wireError(error);
				}
			}
		},
		close() {
			track.close();
			broadcast.close();
		},
	};
}

function wireError(error: unknown): WireError {
	if (error instanceof Moq.RemoteError) return new WireError(error.code, error.message);
	return new WireError(undefined, error instanceof Error ? error.message : String(error));
}
