import { joinKey } from "./key.js";
import type { CallOptions, KeyValue, Receipt } from "./types.js";

/**
 * Why a call was refused, or has no known outcome. Unless code is "unreachable",
 * "outcome_unknown" or "internal", nothing was written.
 */
export class CallError extends Error {
	/**
	 * A stable name: "action_unknown", "key_invalid", "precondition_failed", "busy" and others of
	 * the server, or "unreachable" if no answer came.
	 */
	readonly code: string;
	/** What is wrong, for people; the message says the same. */
	readonly detail: string;
	/** What to do about it, may be "". */
	readonly hint: string;
	/** The HTTP status, 0 if no answer came. */
	readonly status: number;

	constructor(code: string, detail: string, status: number, hint = "", options?: ErrorOptions) {
		super(detail, options);
		this.name = "CallError";
		this.code = code;
		this.detail = detail;
		this.hint = hint;
		this.status = status;
	}
}

/** Calls an action of the server that has this URL, whatever the transport of its sessions. */
export async function callAction(
	server: URL,
	graph: string,
	action: string,
	key: readonly KeyValue[],
	options: CallOptions,
): Promise<Receipt> {
	const segments = [graph, "actions", action].map(encodeURIComponent).join("/");
	const url = new URL(`/v1/graphs/${segments}${key.length > 0 ? `/${joinKey(key)}` : ""}`, server);
	url.protocol = url.protocol.replace("ws", "http");
	url.search = options.expectRevision === undefined ? "" : `?expect_revision=${options.expectRevision}`;
	const headers: Record<string, string> = {};
	if (options.idempotencyKey !== undefined) headers["Idempotency-Key"] = options.idempotencyKey;
	let response: Response;
	let text: string;
	try {
		response = await fetch(url, { method: "POST", headers, signal: options.signal ?? null });
		text = await response.text();
	} catch (error) {
		if (options.signal?.aborted) throw error; // as fetch does
		const why = error instanceof Error ? error.message : String(error);
		throw new CallError("unreachable", `no answer from ${url.origin}: ${why}`, 0, "", { cause: error });
	}
	const answer = parse(text);
	if (!response.ok) {
		const { code, detail, hint } = answer ?? {};
		throw new CallError(
			typeof code === "string" ? code : "internal",
			typeof detail === "string" ? detail : `status ${response.status}`,
			response.status,
			typeof hint === "string" ? hint : "",
		);
	}
	if (answer === undefined || typeof answer.revision !== "number") {
		throw new CallError("internal", `${url.origin} is no Heddle server's data listener`, response.status);
	}
	return answer as unknown as Receipt;
}

function parse(text: string): Record<string, unknown> | undefined {
	try {
		const value: unknown = JSON.parse(text);
		return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
	} catch {
		return undefined;
	}
}
