package admin

import "slices"

// programExample is the program that examples apply.
const programExample = "+edge(src: int, dst: int)\n" +
	"hop2(X, Z) <- edge(X, Y), edge(Y, Z)\n" +
	"view links($head: int) := ?edge($head, Y)\n"

var createFlag = flag{
	"create",
	"Create the graph if there is none. A refused program creates nothing.",
	false,
}

// routes is the table of everything that is served. A new route is a row here;
// tests walk the table.
func routes() []route {
	return slices.Concat(graphRoutes(), viewRoutes(), factRoutes(), callRoutes(), serverRoutes())
}

func graphRoutes() []route {
	return []route{
		{
			method: "GET", path: "/v1/graphs", id: "list-graphs", tag: "Graphs",
			summary:     "List graphs",
			description: "All graphs, sorted by name.",
			status:      200, answer: graphList{},
			curl: "/v1/graphs", handle: (*API).listGraphs,
		}, {
			method: "POST", path: "/v1/graphs", id: "create-graph", tag: "Graphs",
			summary: "Create a graph",
			description: "Makes an empty graph. A name begins with a letter and has letters, " +
				"digits, `_` and `-`, at most 64.",
			bodies: []body{{"application/json", newGraph{}, `{"name": "shop"}`}},
			status: 201, answer: GraphInfo{}, problems: []int{400, 409, 413, 415, 507},
			curl:   `/v1/graphs -d '{"name": "shop"}'`,
			handle: (*API).createGraph,
		}, {
			method: "GET", path: "/v1/graphs/{graph}", id: "get-graph", tag: "Graphs",
			summary:     "Describe a graph",
			description: "Its revision and sizes, its relations and its views.",
			status:      200, answer: graphDetail{}, problems: []int{404},
			curl: "/v1/graphs/shop", handle: (*API).getGraph,
		}, {
			method: "DELETE", path: "/v1/graphs/{graph}", id: "drop-graph", tag: "Graphs",
			summary: "Delete a graph",
			description: "Deletes the graph with all facts. Viewers are told that the view is " +
				"gone.",
			status: 204, problems: []int{404},
			curl: "-X DELETE /v1/graphs/shop", handle: (*API).dropGraph,
		}, {
			method: "GET", path: "/v1/graphs/{graph}/program", id: "get-program", tag: "Programs",
			summary:     "Read the program",
			description: "The schema, rules and views in force, as they were applied.",
			status:      200, answer: ProgramInfo{}, problems: []int{404},
			curl: "/v1/graphs/shop/program", handle: (*API).getProgram,
		}, {
			method: "PUT", path: "/v1/graphs/{graph}/program", id: "apply-program", tag: "Programs",
			summary: "Apply a program",
			description: "The text is the graph's whole program: what is not in it is dropped. " +
				"Nothing of a refused program is applied. A change that would lose facts is " +
				"refused with status 409 and named.",
			flags: []flag{
				{"dry_run", "Only say what would change.", false},
				{"allow_loss", "Drop facts that the new program has no place for.", false},
				createFlag,
			},
			bodies: []body{
				{"text/plain", nil, programExample},
				{"application/json", programBody{}, `{"source": "+edge(src: int, dst: int)"}`},
			},
			status: 200, answer: applyAnswer{},
			problems: []int{400, 404, 409, 413, 415, 429, 503, 507},
			curl:     "-X PUT '/v1/graphs/shop/program?create' --data-binary @shop.heddle",
			handle:   (*API).applyProgram,
		},
	}
}

func viewRoutes() []route {
	return []route{
		{
			method: "GET", path: "/v1/graphs/{graph}/families", id: "list-families", tag: "Views",
			summary: "List families",
			description: "For each view: how many keys are watched, by how many viewers, at " +
				"which revision.",
			status: 200, answer: familyList{}, problems: []int{404},
			curl: "/v1/graphs/shop/families", handle: (*API).listFamilies,
		}, {
			method: "GET", path: "/v1/graphs/{graph}/errors", id: "list-errors", tag: "Views",
			summary: "List what cannot be computed",
			description: "The rules and views that cannot be computed for some rows that " +
				"somebody watches, with the first of those rows. They go when the cause goes.",
			status: 200, answer: ErrorList{}, problems: []int{404, 429, 503},
			curl: "/v1/graphs/shop/errors", handle: (*API).listErrors,
		}, {
			method: "GET", path: "/v1/graphs/{graph}/explain/{name}", id: "explain", tag: "Views",
			summary: "Explain a plan",
			description: "How a view, the rules of a relation, or what reads the facts of one " +
				"are evaluated: sets, indexes, steps, and what was done to the rules.",
			flags:  []flag{profileFlag},
			status: 200, answer: planAnswer{}, problems: []int{400, 404, 429, 503},
			curl: "/v1/graphs/shop/explain/links", handle: (*API).explainPlan,
		},
	}
}

func factRoutes() []route {
	return []route{
		{
			method: "POST", path: "/v1/graphs/{graph}/transactions", id: "transact", tag: "Facts",
			summary: "Write facts",
			description: "One transaction: all of it or nothing, durable when the answer comes. " +
				"Deletions go before insertions. A row that is there already or is not there is " +
				"no error. An int may be a decimal string, which keeps integers beyond 2^53-1 " +
				"exact. Program text may have conditions; each statement sees what those " +
				"before it wrote.",
			flags:      []flag{expectFlag},
			idempotent: true,
			bodies: []body{
				{
					"application/json",
					transactionBody{},
					`{"insert": {"edge": [[1, 2], [2, 3]]}, "delete": {"edge": [[4, 5]]}}`,
				},
				{"text/plain", nil, "+edge[(1, 2), (2, 3)]\n-edge(X, Y) <- edge(X, Y), Y > 7\n"},
			},
			status: 200, answer: Receipt{},
			problems: []int{400, 404, 409, 413, 415, 422, 429, 503, 507},
			curl:     `/v1/graphs/shop/transactions -d '{"insert": {"edge": [[1, 2], [2, 3]]}}'`,
			handle:   (*API).transact,
		}, {
			method: "POST", path: "/v1/graphs/{graph}/relations/{relation}/rows", id: "load-rows",
			tag: "Facts", summary: "Load a CSV file",
			description: "All rows of a CSV file, plain or gzip, in one transaction. The first " +
				"line names the columns, in any order. Each bad row is named by line, column and " +
				"reason (the first 20; all are counted), and then nothing is loaded.",
			flags: []flag{{
				"header",
				"Set to false if the first line is data; columns are then in the schema's order.",
				false,
			}, expectFlag},
			idempotent: true,
			bodies: []body{
				{"text/csv", nil, "src,dst\n1,2\n2,3\n"},
				{"application/gzip", nil, ""},
			},
			status: 200, answer: Receipt{},
			problems: []int{400, 404, 409, 413, 415, 422, 429, 503, 507},
			curl: "/v1/graphs/shop/relations/edge/rows -H 'Content-Type: text/csv' " +
				"--data-binary @edge.csv",
			handle: (*API).loadRows,
		},
	}
}

func callRoutes() []route {
	return []route{
		{
			method: "POST", path: "/v1/graphs/{graph}/actions/{action}/{key}", id: "call-action",
			tag: "Facts", summary: "Call an action", rest: true,
			description: "One transaction, as the program declares the action. The key has a " +
				"segment for each parameter, spelled as in a view's key; without parameters the " +
				"path ends with the action. On the data listener this route needs no key.",
			right: rightPublic, flags: []flag{expectFlag}, idempotent: true,
			status: 200, answer: Receipt{},
			problems: []int{400, 404, 409, 413, 422, 429, 503, 507},
			curl:     "-X POST /v1/graphs/shop/actions/claim/anna/7",
			handle:   (*API).callAction,
		}, {
			method: "POST", path: "/v1/graphs/{graph}/query", id: "query", tag: "Facts",
			summary: "Ask a query",
			description: "Answers once, with what is known at one revision. Values for `$name` " +
				"travel in `parameters`, typed by the columns they meet. On the data listener " +
				"this route needs no key.",
			right: rightPublic,
			bodies: []body{
				{
					"application/json",
					queryBody{},
					`{"query": "?edge($from, Y), Y > 7", "parameters": {"from": 1}, "limit": 100}`,
				},
				{"text/plain", nil, "?edge(1, Y), Y > 7"},
			},
			status: 200, answer: queryAnswer{},
			problems: []int{400, 404, 409, 413, 415, 422, 429, 503, 504},
			curl: `/v1/graphs/shop/query -d '{"query": "?edge($from, Y)", "parameters": ` +
				`{"from": 1}}'`,
			handle: (*API).query,
		}, {
			method: "POST", path: "/v1/graphs/{graph}/why", id: "why", tag: "Facts",
			summary: "Explain rows",
			description: "Why a query has its first rows: a proof from facts, rule by rule. " +
				"On the data listener this route needs no key.",
			right: rightPublic,
			bodies: []body{
				{
					"application/json",
					whyBody{},
					`{"query": "?hop2($from, 3)", "parameters": {"from": 1}, "limit": 2}`,
				},
				{"text/plain", nil, "?hop2(1, 3)"},
			},
			status: 200, answer: whyAnswer{},
			problems: []int{400, 404, 409, 413, 415, 422, 429, 503, 504},
			curl:     `/v1/graphs/shop/why -d '{"query": "?hop2(1, 3)"}'`,
			handle:   (*API).why,
		}, {
			method: "POST", path: "/v1/graphs/{graph}/why-not", id: "why-not", tag: "Facts",
			summary: "Explain missing rows",
			description: "Why a query has no row: the first condition that fails in each rule " +
				"that could give one. On the data listener this route needs no key.",
			right: rightPublic,
			bodies: []body{
				{"application/json", whyBody{}, `{"query": "?hop2(1, 9)", "levels": 2}`},
				{"text/plain", nil, "?hop2(1, 9)"},
			},
			status: 200, answer: whyNotAnswer{},
			problems: []int{400, 404, 409, 413, 415, 422, 429, 503, 504},
			curl:     `/v1/graphs/shop/why-not -d '{"query": "?hop2(1, 9)"}'`,
			handle:   (*API).whyNot,
		},
	}
}

func serverRoutes() []route {
	return []route{
		{
			method: "GET", path: "/livez", id: "live", tag: "Server",
			summary:     "Is the process alive?",
			description: "Answers as long as the process serves requests.",
			right:       rightOpen, status: 200, answer: healthAnswer{},
			curl: "/livez", handle: (*API).live,
		}, {
			method: "GET", path: "/readyz", id: "ready", tag: "Server",
			summary: "Can it do its work?",
			description: "Probes the journal and every graph's loop; status 503 names the " +
				"failing part.",
			right: rightOpen, status: 200, answer: healthAnswer{}, problems: []int{503},
			curl: "/readyz", handle: (*API).ready,
		}, {
			method: "GET", path: "/metrics", id: "metrics", tag: "Server",
			summary:     "Metrics",
			description: "In the text format of Prometheus.",
			right:       rightPage, status: 200, media: "text/plain",
			curl: "/metrics", handle: (*API).serveMetrics,
		}, {
			method: "GET", path: "/openapi.json", id: "openapi", tag: "Server",
			summary:     "This API as OpenAPI 3.1",
			description: "For code generators and API browsers.",
			right:       rightPage, status: 200, media: "application/openapi+json",
			curl: "/openapi.json", handle: (*API).serveOpenAPI,
		}, {
			method: "GET", path: "/docs", id: "docs", tag: "Server",
			summary: "This documentation",
			description: "A page for people; a browser asks for a password, which is the admin " +
				"key.",
			right: rightPage, status: 200, media: "text/html",
			curl: "/docs", handle: (*API).serveDocs,
		},
	}
}
