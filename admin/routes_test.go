package admin_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/admin/admintest"
	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

var update = flag.Bool("update", false, "rewrite golden files")

const testKey = "a-key-for-tests-0123456789"

func testProgram() *analysis.Program {
	ints := []analysis.Column{{Name: "src", Type: value.Int}, {Name: "dst", Type: value.Int}}
	return &analysis.Program{
		Source:  "+edge(src: int, dst: int)\nview links($head: int) := ?edge($head, Y)\n",
		Actions: testActions(),
		Relations: []analysis.Relation{
			{Name: "edge", Columns: ints},
			{Name: "hop2", Columns: ints, Derived: true},
		},
		Views: []analysis.View{{
			Name: "links", Text: "view links($head: int) := ?edge($head, Y)",
			Parameters: []analysis.Column{{Name: "head", Type: value.Int}},
			Parts: []analysis.Part{{Query: analysis.Query{
				Parameters: []analysis.Column{{Name: "head", Type: value.Int}},
				Columns:    []analysis.Column{{Name: "head", Type: value.Int}, {Name: "Y", Type: value.Int}},
			}}},
		}},
	}
}

// testActions are one without parameters and one with two.
func testActions() []analysis.Action {
	row := []value.Value{value.OfInt(1), value.OfInt(2)}
	parameters := []analysis.Column{
		{Name: "who", Type: value.String}, {Name: "dst", Type: value.Int},
	}
	return []analysis.Action{
		{
			Name: "begin", Text: "action begin() := +edge(1, 2)",
			Statements: []analysis.Statement{{Ops: []analysis.Op{{Relation: "edge", Row: row}}}},
		},
		{Name: "link", Text: "action link($who: string, $dst: int) := …", Parameters: parameters},
	}
}

// failing is a rule that divides by zero.
func failing() engine.RuleErrors {
	return engine.RuleErrors{
		Rule: "r(R) <- edge(A, B), R = A / B", Pos: analysis.Position{Line: 3, Column: 1}, Count: 21,
		Samples: []engine.RowError{{
			Code: "division_by_zero", Message: "division_by_zero: 7 / 0",
			Variables: []string{"A", "B"}, Values: []value.Value{value.OfInt(7), value.OfInt(0)},
		}},
	}
}

// fixture is the handlers over a fake service with one graph, shop.
type fixture struct {
	service     *admintest.Service
	api         *admin.API
	admin, data http.Handler
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{service: admintest.New()}
	f.service.Put("shop", testProgram())
	f.service.Failing = []engine.RuleErrors{failing()}
	f.service.Compile = func(source string) (*analysis.Program, error) {
		p := testProgram()
		p.Source = source
		return p, nil
	}
	var err error
	f.api, err = admin.New(admin.Config{
		Service: f.service, AdminKey: testKey, Version: "test", Metrics: admin.NewMetrics(),
		Limits: admin.Limits{BodyBytes: 4096, LoadBytes: 8192, LoadRows: 500, QueryRows: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.admin, f.data = f.api.AdminHandler(), f.api.DataHandler()
	return f
}

// request builds one to the admin listener; headers are "Name: value" lines.
func request(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1:4444"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testKey)
	for _, h := range headers {
		name, v, _ := strings.Cut(h, ": ")
		r.Header.Del(name)
		if v != "" {
			r.Header.Set(name, v)
		}
	}
	return r
}

func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// problem decodes an error answer and checks its form.
func problem(t *testing.T, w *httptest.ResponseRecorder) *admin.Problem {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("status %d, Content-Type %s\n%s", w.Code, got, w.Body)
	}
	p := new(admin.Problem)
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		t.Fatal(err)
	}
	if p.Status != w.Code || p.Code == "" || p.Detail == "" || p.Title != http.StatusText(w.Code) {
		t.Errorf("incomplete problem %+v", p)
	}
	return p
}

const (
	csvType  = "Content-Type: text/csv"
	jsonType = "Content-Type: application/json"
	textType = "Content-Type: text/plain"
)

// successes has at least one line for every route of the table, which
// TestEveryRouteIsTested checks.
var successes = []struct {
	method, path, body, header string
	status                     int
	want                       string // of the body, white space at the end aside; "" for any
}{
	{
		"GET", "/v1/graphs", "", "", 200,
		`{"graphs":[{"name":"shop","revision":0,"epoch":"01920000-0000-7000-8000-000000000000",` +
			`"schema":1,"facts":0,"watched_keys":0,"read_only":false}]}`,
	},
	{
		"POST", "/v1/graphs", `{"name":"new-1_X"}`, jsonType, 201,
		`{"name":"new-1_X","revision":0,"epoch":"01920000-0000-7000-8000-000000000000",` +
			`"schema":1,"facts":0,"watched_keys":0,"read_only":false}`,
	},
	{
		"GET", "/v1/graphs/shop", "", "", 200,
		`{"name":"shop","revision":0,"epoch":"01920000-0000-7000-8000-000000000000","schema":1,"facts":0,` +
			`"watched_keys":0,"read_only":false,"relations":[{"name":"edge","columns":[{"name":"src",` +
			`"type":"int"},{"name":"dst","type":"int"}],"derived":false},{"name":"hop2","columns":[` +
			`{"name":"src","type":"int"},{"name":"dst","type":"int"}],"derived":true}],"views":[{` +
			`"name":"links","parameters":[{"name":"head","type":"int"}],"columns":[{"name":"head",` +
			`"type":"int"},{"name":"Y","type":"int"}],"text":"view links($head: int) := ?edge($head, Y)"}],"actions":[{"name":"begin","parameters":[],` +
			`"text":"action begin() := +edge(1, 2)"},{"name":"link","parameters":[{"name":"who",` +
			`"type":"string"},{"name":"dst","type":"int"}],"text":"action link($who: string, $dst: int) := …"}]}`,
	},
	{"GET", "/v1/graphs/%73hop", "", "", 200, ""},
	{"DELETE", "/v1/graphs/shop", "", "", 204, ""},
	{
		"GET", "/v1/graphs/shop/program", "", "", 200,
		`{"source":"+edge(src: int, dst: int)\nview links($head: int) := ?edge($head, Y)\n","revision":0,"schema":1}`,
	},
	{
		"PUT", "/v1/graphs/shop/program", "+edge(a: int)", textType, 200,
		`{"revision":1,"schema":2,"created":false,"dry_run":false,"changes":{"relations":{},"rules":{},"views":{},"actions":{}}}`,
	},
	{
		"PUT", "/v1/graphs/shop/program?dry_run&allow_loss=true", `{"source":"x"}`, jsonType, 200,
		`{"revision":0,"schema":1,"created":false,"dry_run":true,"changes":{"relations":{},"rules":{},"views":{},"actions":{}}}`,
	},
	{
		"PUT", "/v1/graphs/fresh/program?create=true", "+edge(a: int)", "", 200,
		`{"revision":1,"schema":1,"created":true,"dry_run":false,"changes":{"relations":{},"rules":{},"views":{},"actions":{}}}`,
	},
	{
		"GET", "/v1/graphs/shop/families", "", "", 200,
		`{"families":[{"view":"links","parameters":[{"name":"head","type":"int"}],"watched_keys":1,` +
			`"viewers":2,"revision":0}]}`,
	},
	{
		"GET", "/v1/graphs/shop/errors", "", "", 200,
		`{"revision":0,"errors":[{"rule":"r(R) \u003c- edge(A, B), R = A / B","line":3,"column":1,"count":21,"rows":[` +
			`{"code":"division_by_zero","message":"division_by_zero: 7 / 0","bindings":{"A":"7","B":"0"}}]}]}`,
	},
	{
		"POST", "/v1/graphs/shop/transactions", `{"insert":{"edge":[[1,2],[1,2]]}}`, jsonType, 200,
		`{"revision":1,"inserted":1,"deleted":0,"replayed":false}`,
	},
	{
		"POST", "/v1/graphs/shop/transactions", `{"insert":{"edge":[[1,2]]}}`,
		"Content-Type: application/x-www-form-urlencoded", 200, "",
	},
	{"POST", "/v1/graphs/shop/transactions", ` {"insert":{"edge":[[1,2]]}}`, "", 200, ""},
	{"POST", "/v1/graphs/shop/transactions?expect_revision=0", "+edge(1, 2)", textType, 200, ""},
	{
		"POST", "/v1/graphs/shop/actions/begin", "", "", 200,
		`{"revision":1,"inserted":1,"deleted":0,"replayed":false,"statements":[{"rows":1,"inserted":1,"deleted":0}]}`,
	},
	{"POST", "/v1/graphs/shop/actions/link/a~20b/-7?expect_revision=0", "{}", "", 200, ""},
	{
		"POST", "/v1/graphs/shop/relations/edge/rows", "dst,src\n1,2\n3,4\n", csvType, 200,
		`{"revision":1,"inserted":2,"deleted":0,"replayed":false}`,
	},
	{"POST", "/v1/graphs/shop/relations/edge/rows?header=false", "1,2\n3,4\n", csvType, 200, ""},
	{
		"POST", "/v1/graphs/shop/query", "?edge(1, Y)", textType, 200,
		`{"revision":0,"columns":[],"rows":[],"truncated":false}`,
	},
	{
		"POST", "/v1/graphs/shop/why", `{"query":"?edge(1, Y)","nodes":5,"limit":2}`, jsonType, 200,
		`{"revision":0,"query":"?edge(1, Y)","rows":0,"text":"?edge(1, Y) has no row\n","roots":[],"nodes":[]}`,
	},
	{
		"POST", "/v1/graphs/shop/why-not", "?edge(1, Y)", textType, 200,
		`{"revision":0,"query":"?edge(1, Y)","rows":0,"text":"?edge(1, Y) has no row\n└ there is no fact edge(1, Y)\n",` +
			`"absent":[{"row":[],"failures":[{"kind":"head","text":"there is no fact edge(1, Y)","matches":1}]}]}`,
	},
	{
		"GET", "/v1/graphs/shop/explain/links?profile_ms=5", "", "", 200,
		`{"revision":0,"of":"links","kind":"view","watched_keys":1,"profiled":true,"text":"view links, 1 watched key\n",` +
			`"sets":[],"indexes":[],"rules":[],"notes":[]}`,
	},
	{"GET", "/livez", "", "", 200, `{"status":"live"}`},
	{"GET", "/readyz", "", "", 200, `{"status":"ready"}`},
	{"GET", "/metrics", "", "", 200, ""},
	{"GET", "/openapi.json", "", "", 200, ""},
	{"GET", "/docs", "", "", 200, ""},
}

func TestRoutesSucceed(t *testing.T) {
	for _, tt := range successes {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			w := do(newFixture(t).admin, request(tt.method, tt.path, tt.body, tt.header))
			got := strings.TrimSpace(w.Body.String())
			if w.Code != tt.status || tt.want != "" && got != tt.want {
				t.Errorf("status %d\ngot  %s\nwant %s", w.Code, got, tt.want)
			}
		})
	}
}

// operations lists the routes as the OpenAPI document has them: "GET /v1/graphs".
func operations(t *testing.T, f *fixture) map[string]map[string]any {
	t.Helper()
	var document struct {
		Paths map[string]map[string]map[string]any
	}
	if err := json.Unmarshal(f.api.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	list := map[string]map[string]any{}
	for path, item := range document.Paths {
		for method, op := range item {
			list[strings.ToUpper(method)+" "+path] = op
		}
	}
	return list
}

var pathParameter = regexp.MustCompile(`\{\w+\}`)

func TestEveryRouteIsTested(t *testing.T) {
	for name := range operations(t, newFixture(t)) {
		method, path, _ := strings.Cut(name, " ")
		path = strings.Replace(path, "{key}", ".+", 1)
		pattern := regexp.MustCompile("^" + pathParameter.ReplaceAllString(path, `[^/]+`) + `(\?.*)?$`)
		tested := false
		for _, tt := range successes {
			tested = tested || tt.method == method && pattern.MatchString(tt.path)
		}
		if !tested {
			t.Errorf("no test of success for %s", name)
		}
	}
}

func TestEveryRouteNeedsTheKey(t *testing.T) {
	f := newFixture(t)
	for name := range operations(t, f) {
		method, path, _ := strings.Cut(name, " ")
		path = pathParameter.ReplaceAllString(path, "shop")
		open := path == "/livez" || path == "/readyz"
		for _, key := range []string{"", "Bearer wrong", "Bearer", "bearer x", "Basic !", "Bearer " + testKey + "x"} {
			w := do(f.admin, request(method, path, "", "Authorization: "+key))
			if open {
				if w.Code != 200 {
					t.Errorf("%s with %q: status %d", name, key, w.Code)
				}
				continue
			}
			if p := problem(t, w); p.Status != 401 || !strings.Contains(p.Hint, "HEDDLE_ADMIN_KEY") ||
				w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s with %q: %+v", name, key, p)
			}
		}
	}
	for _, path := range []string{"/", "/nothing", "/v1/graphs/shop/query"} {
		if w := do(f.admin, request("GET", path, "", "Authorization: ")); w.Code != 401 {
			t.Errorf("GET %s without a key: status %d", path, w.Code)
		}
	}
}

// A browser repeats Basic credentials on its own, so only what shows and does
// not change takes them.
func TestBasicIsForPagesOnly(t *testing.T) {
	f := newFixture(t)
	for name := range operations(t, f) {
		method, path, _ := strings.Cut(name, " ")
		r := request(method, pathParameter.ReplaceAllString(path, "shop"), "")
		r.SetBasicAuth("anybody", testKey)
		want := 401
		switch path {
		case "/metrics", "/docs", "/openapi.json", "/livez", "/readyz":
			want = 200
		}
		if w := do(f.admin, r); w.Code != want {
			t.Errorf("%s: status %d, want %d", name, w.Code, want)
		}
	}
}

func TestLoopbackOnly(t *testing.T) {
	tests := []struct {
		host, origin string
		ok           bool
	}{
		{"localhost", "", true},
		{"LOCALHOST:4443", "http://localhost:9", true},
		{"127.0.0.1:4443", "https://127.0.0.1:4443", true},
		{"127.8.9.1", "", true},
		{"[::1]:4443", "http://[::1]:4443", true},
		{"[::1]", "", true},
		{"[::ffff:127.0.0.1]:1", "", true},
		{"heddle.example", "", false},
		{"localhost.example", "", false},
		{"127.0.0.1.example:80", "", false},
		{"10.0.0.1", "", false},
		{"", "", false},
		{"localhost", "null", false},
		{"localhost", "https://heddle.example", false},
		{"localhost", "file://localhost", false},
		{"localhost", "http://localhost.example", false},
		{"localhost", "http://user@10.0.0.1", false},
	}
	f := newFixture(t)
	for _, tt := range tests {
		for _, h := range []http.Handler{f.admin, f.data} {
			r := request("POST", "/v1/graphs/shop/query", "?edge(1, Y)")
			r.Host = tt.host
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			w := do(h, r)
			if ok := w.Code == 200; ok != tt.ok || admin.LoopbackAllowed(r) != tt.ok {
				t.Errorf("Host %q, Origin %q: status %d", tt.host, tt.origin, w.Code)
			}
			if !tt.ok && problem(t, w).Status != 403 {
				t.Errorf("Host %q, Origin %q: status %d, want 403", tt.host, tt.origin, w.Code)
			}
		}
	}
}

func TestDataListener(t *testing.T) {
	f := newFixture(t)
	for name := range operations(t, f) {
		method, path, _ := strings.Cut(name, " ")
		path = pathParameter.ReplaceAllString(path, "shop")
		want := 404
		body := ""
		switch {
		case path == "/v1/graphs/shop/query", strings.HasPrefix(path, "/v1/graphs/shop/why"):
			want, body = 200, "?edge(1, Y)"
		case strings.Contains(path, "/actions/"):
			path, want = "/v1/graphs/shop/actions/begin", 200
		}
		w := do(f.data, request(method, path, body, "Authorization: "))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", name, w.Code, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	const rows = "/v1/graphs/shop/relations/edge/rows"
	tests := []struct {
		name, method, path, body, header string
		status                           int
		code, want                       string
	}{
		{"no such route", "GET", "/v1/grphs", "", "", 404, "route_unknown", "/openapi.json"},
		{"wrong method", "PATCH", "/v1/graphs/shop/program", "", "", 405, "method_not_allowed", "it takes GET, PUT"},
		{"unknown graph", "GET", "/v1/graphs/shp", "", "", 404, "graph_unknown", `heddle apply shp FILE`},
		{"unknown graph, program", "GET", "/v1/graphs/shp/program", "", "", 404, "graph_unknown", `POST /v1/graphs {"name": "shp"}`},
		{"unknown graph, apply", "PUT", "/v1/graphs/shp/program", "x", textType, 404, "graph_unknown", "?create"},
		{"unknown graph, delete", "DELETE", "/v1/graphs/shp", "", "", 404, "graph_unknown", "shp"},
		{"unknown graph, families", "GET", "/v1/graphs/shp/families", "", "", 404, "graph_unknown", "shp"},
		{"unknown graph, transaction", "POST", "/v1/graphs/shp/transactions", "{}", "", 404, "graph_unknown", "shp"},
		{"unknown graph, load", "POST", "/v1/graphs/shp/relations/edge/rows", "", "", 404, "graph_unknown", "shp"},
		{"unknown graph, query", "POST", "/v1/graphs/shp/query", "?edge(1, Y)", "", 404, "graph_unknown", "shp"},
		{"odd graph name", "GET", "/v1/graphs/a%20b%22", "", "", 404, "graph_unknown", `heddle apply NAME FILE`},
		{"graph exists", "POST", "/v1/graphs", `{"name":"shop"}`, "", 409, "graph_exists", "shop"},
		{"graph name", "POST", "/v1/graphs", `{"name":"a/b"}`, "", 400, "graph_name", "begins with a letter"},
		{"graph name long", "POST", "/v1/graphs", `{"name":"` + strings.Repeat("a", 65) + `"}`, "", 400, "graph_name", "64"},
		{"graph name missing", "POST", "/v1/graphs", `{}`, "", 400, "graph_name", ""},
		{"graph name on create", "PUT", "/v1/graphs/.x/program?create", "x", "", 400, "graph_name", ""},
		{"graph member", "POST", "/v1/graphs", `{"nam":"x"}`, "", 400, "json_invalid", `did you mean "name"?`},
		{"graph text", "POST", "/v1/graphs", `shop`, "", 400, "json_invalid", "expected a JSON object, found shop"},
		{"unknown parameter", "PUT", "/v1/graphs/shop/program?dryrun", "x", "", 400, "parameter_unknown", `did you mean "dry_run"?`},
		{"odd parameter", "PUT", "/v1/graphs/shop/program?dry_run=maybe", "x", "", 400, "parameter_invalid", "expected true or false"},
		{"parameter where none is", "GET", "/v1/graphs?x=1", "", "", 400, "parameter_unknown", "takes none"},
		{"program in XML", "PUT", "/v1/graphs/shop/program", "<a/>", "Content-Type: application/xml", 415, "media_type", "text/plain"},
		{"odd media type", "PUT", "/v1/graphs/shop/program", "", "Content-Type: //", 415, "media_type", ""},
		{"program too large", "PUT", "/v1/graphs/shop/program", strings.Repeat("x", 4097), "", 413, "body_too_large", "4096 bytes"},
		{"transaction too large", "POST", "/v1/graphs/shop/transactions", strings.Repeat(" ", 5000), "", 413, "body_too_large", "body_bytes"},
		{"transaction malformed", "POST", "/v1/graphs/shop/transactions", `{"insert"`, "", 400, "json_invalid", "line 1, column 10"},
		{"transaction as CSV", "POST", "/v1/graphs/shop/transactions", "1,2", csvType, 415, "media_type", "application/json"},
		{
			"idempotency key long", "POST", "/v1/graphs/shop/transactions", `{"insert":{}}`,
			"Idempotency-Key: " + strings.Repeat("k", 256), 400, "idempotency_key", "255",
		},
		{
			"idempotency key on apply", "PUT", "/v1/graphs/shop/program", "x", "Idempotency-Key: k",
			400, "idempotency_key", "takes no Idempotency-Key",
		},
		{
			"idempotency key on create", "POST", "/v1/graphs", `{"name":"x"}`, "Idempotency-Key: k",
			400, "idempotency_key", "leave the header out",
		},
		{"expected revision", "POST", "/v1/graphs/shop/transactions?expect_revision=7", "+edge(1, 2)", "", 409, "precondition_failed", "read again"},
		{"expected revision in JSON", "POST", "/v1/graphs/shop/transactions", `{"insert":{"edge":[[1,2]]},"expect_revision":7}`, "", 409, "precondition_failed", ""},
		{"expected revisions", "POST", "/v1/graphs/shop/transactions?expect_revision=0", `{"insert":{},"expect_revision":1}`, "", 400, "parameter_invalid", "revision 1 and the query string 0"},
		{"expected revision odd", "POST", "/v1/graphs/shop/transactions?expect_revision=-1", "x", "", 400, "parameter_invalid", "a number from 0 on"},
		{"action unknown", "POST", "/v1/graphs/shop/actions/linc/a/1", "", "", 404, "action_unknown", `"link"?`},
		{"action that is a view", "POST", "/v1/graphs/shop/actions/links/1", "", "", 404, "action_unknown", "is a view"},
		{"action of an unknown graph", "POST", "/v1/graphs/shp/actions/link/a/1", "", "", 404, "graph_unknown", "shp"},
		{"action with too few values", "POST", "/v1/graphs/shop/actions/link/a", "", "", 400, "key_invalid", "(who: string, dst: int)"},
		{"action with too many values", "POST", "/v1/graphs/shop/actions/begin/1", "", "", 400, "key_invalid", "takes 0 values"},
		{"action with a wrong value", "POST", "/v1/graphs/shop/actions/link/a/x", "", "", 400, "key_invalid", "parameter dst"},
		{"action with a slash", "POST", "/v1/graphs/shop/actions/link/a%2fb/1", "", "", 400, "key_invalid", "parameter who"},
		{"action with a body", "POST", "/v1/graphs/shop/actions/link/a/1", `{"who":"a"}`, "", 400, "body_unexpected", "in the path"},
		{"action by GET", "GET", "/v1/graphs/shop/actions/link/a/1", "", "", 405, "method_not_allowed", "it takes POST"},
		{"load too large", "POST", rows, strings.Repeat("1,2\n", 2100), "", 413, "body_too_large", "load_bytes"},
		{"load with too many rows", "POST", rows + "?header=false", strings.Repeat("1,2\n", 501), "", 413, "rows_too_many", "500 rows"},
		{"load malformed", "POST", rows, "src,dst\n1,x\n", csvType, 400, "rows_invalid", "column dst"},
		{"load as JSON", "POST", rows, "[]", jsonType, 415, "media_type", "/transactions"},
		{"load encoding", "POST", rows, "", "Content-Encoding: br", 415, "encoding", "gzip"},
		{"load gzip damaged", "POST", rows, "\x1f\x8bxxxxxxxxxxxxxxx", "", 400, "gzip_invalid", ""},
		{"load gzip short", "POST", rows, "\x1f\x8b", "", 400, "body_incomplete", ""},
		{"load into nothing", "POST", "/v1/graphs/shop/relations/egde/rows", "", "", 404, "relation_unknown", `"edge"?`},
		{"load into a rule", "POST", "/v1/graphs/shop/relations/hop2/rows", "", "", 400, "relation_derived", "rules"},
		{"query empty", "POST", "/v1/graphs/shop/query", `{"query":""}`, "", 400, "json_invalid", "missing or empty"},
		{"query member", "POST", "/v1/graphs/shop/query", `{"queri":""}`, "", 400, "json_invalid", `did you mean "query"?`},
		{"query limit", "POST", "/v1/graphs/shop/query", `{"query":"?edge(1, Y)","limit":101}`, "", 400, "json_invalid", "from 0 to 100"},
		{"query deadline", "POST", "/v1/graphs/shop/query", `{"query":"?edge(1, Y)","deadline_ms":-1}`, "", 400, "json_invalid", "from 0 to 5000"},
		{"query revision", "POST", "/v1/graphs/shop/query", `{"query":"?edge(1, Y)","min_revision":true}`, "", 400, "json_invalid", "found true"},
		{"query parameters", "POST", "/v1/graphs/shop/query", `{"query":"?edge(1, Y)","parameters":[1]}`, "", 400, "json_invalid", "found an array"},
		{"query malformed", "POST", "/v1/graphs/shop/query", "?edge(1, Y", textType, 400, "program_invalid", "line 1, column"},
		{"query malformed in JSON", "POST", "/v1/graphs/shop/query", `{"query":"edge"}`, "", 400, "program_invalid", "line 1, column"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			p := problem(t, do(f.admin, request(tt.method, tt.path, tt.body, tt.header)))
			if p.Status != tt.status || p.Code != tt.code || !strings.Contains(p.Text(), tt.want) {
				t.Errorf("%d %s\n%s\nwant %d %s with %q", p.Status, p.Code, p.Text(), tt.status, tt.code, tt.want)
			}
			if len(f.service.Transactions) > 0 || len(f.service.Queries) > 0 {
				t.Error("a refused request reached the graph")
			}
		})
	}
}

func TestOpenAPI(t *testing.T) {
	f := newFixture(t)
	golden := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.WriteFile(golden, f.api.OpenAPI(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(f.api.OpenAPI(), want) {
		t.Error("the OpenAPI document differs from testdata/openapi.json; look at the difference after -update")
	}
	for name, op := range operations(t, f) {
		for _, member := range []string{"summary", "description", "operationId", "tags", "responses"} {
			if op[member] == nil {
				t.Errorf("%s lacks %s", name, member)
			}
		}
	}
}

// The manual and the page have every route.
func TestRoutesAreDocumented(t *testing.T) {
	f := newFixture(t)
	manual, err := os.ReadFile(filepath.Join("..", "docs", "rest.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := do(f.admin, request("GET", "/docs", "")).Body.String()
	for name := range operations(t, f) {
		_, path, _ := strings.Cut(name, " ")
		if !strings.Contains(string(manual), "`"+name) {
			t.Errorf("docs/rest.md does not mention `%s`", name)
		}
		if !strings.Contains(page, path) {
			t.Errorf("/docs does not mention %s", path)
		}
	}
	if strings.Contains(page, "://unpkg") || strings.Contains(page, "<script") {
		t.Error("/docs loads something")
	}
}

func TestNewRefuses(t *testing.T) {
	good := admin.Config{Service: admintest.New(), AdminKey: testKey, Metrics: admin.NewMetrics()}
	for name, change := range map[string]func(*admin.Config){
		"service": func(c *admin.Config) { c.Service = nil },
		"metrics": func(c *admin.Config) { c.Metrics = nil },
		"key":     func(c *admin.Config) { c.AdminKey = "short" },
	} {
		cfg := good
		change(&cfg)
		if _, err := admin.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
