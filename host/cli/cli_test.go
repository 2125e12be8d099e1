package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/admin/admintest"
	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

const (
	testKey  = "a-key-for-tests-0123456789"
	wrongKey = "another-key-9876543210-abcdef"
)

// server is the real REST handler over a fake service with one graph, shop.
type server struct {
	*admintest.Service
	address string
}

func newServer(t *testing.T) *server {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, v, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "HEDDLE_") {
			t.Setenv(name, v) // restored afterwards
			_ = os.Unsetenv(name)
		}
	}
	t.Chdir(t.TempDir())
	s := &server{Service: admintest.New()}
	columns := []analysis.Column{{Name: "src", Type: value.Int}, {Name: "dst", Type: value.Int}}
	program := &analysis.Program{Relations: []analysis.Relation{{Name: "edge", Columns: columns}}}
	s.Put("shop", program)
	s.Compile = func(source string) (*analysis.Program, error) {
		if _, err := parse.Program(source); err != nil {
			return nil, err
		}
		return program, nil
	}
	api, err := admin.New(admin.Config{
		Service: s, AdminKey: testKey, Metrics: admin.NewMetrics(),
		Limits: admin.Limits{LoadBytes: 1 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(api.AdminHandler())
	t.Cleanup(listener.Close)
	s.address = listener.URL
	return s
}

// result is what a command left behind.
type result struct {
	out string
	err error
}

// run runs a command line with the server's address and key.
func (s *server) run(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return run(t, stdin, append(args, "--server", s.address, "--key", testKey)...)
}

func run(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	root := &cobra.Command{Use: "heddle", SilenceErrors: true}
	root.AddCommand(NewClientCommands()...)
	var out, usage bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&usage)
	root.SetIn(strings.NewReader(stdin))
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return result{out.String(), err}
}

// want checks a command that succeeds.
func (r result) want(t *testing.T, out string) {
	t.Helper()
	if r.err != nil || r.out != out {
		t.Errorf("error %v\ngot  %q\nwant %q", r.err, r.out, out)
	}
}

// wantError checks a command that fails.
func (r result) wantError(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.err == nil || Report(io.Discard, r.err) != code {
		t.Fatalf("output %q, exit code %d, want %d\n%v", r.out, Report(io.Discard, r.err), code, r.err)
	}
	for _, text := range texts {
		if !strings.Contains(r.err.Error(), text) {
			t.Errorf("got\n%v\nwant %q in it", r.err, text)
		}
	}
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestApply(t *testing.T) {
	s := newServer(t)
	program := file(t, "shop.heddle", "+edge(src: int, dst: int)\n")
	s.run(t, "", "apply", "shop", program).want(t,
		"graph shop: program applied at revision 1\n  no changes\n")
	s.run(t, "+edge(src: int)\n", "apply", "fresh", "-").want(t,
		"graph fresh: program created and applied at revision 1\n  no changes\n")
	s.run(t, "", "apply", "shop", program, "--dry-run", "--yes", "--no-create").want(t,
		"graph shop: program would be applied (now at revision 1)\n  no changes\n")
	if want := (admin.ApplyOptions{DryRun: true, AllowLoss: true}); s.Applied[2] != want {
		t.Errorf("options %+v", s.Applied[2])
	}
	r := s.run(t, "", "apply", "shop", program, "--json")
	if r.err != nil || !strings.HasPrefix(r.out, `{"revision":2,`) {
		t.Errorf("%q, %v", r.out, r.err)
	}
	s.run(t, "+edge(src: int\n", "apply", "shop", "-").wantError(t, ExitRefused, "line 1, column", "^")
	s.run(t, "", "apply", "nothing", program, "--no-create").wantError(t, ExitRefused,
		`there is no graph "nothing"`)
	s.run(t, "", "apply", "shop", "no-such-file").wantError(t, ExitUsage, "no-such-file")
	s.run(t, "", "apply", "shop", t.TempDir()).wantError(t, ExitUsage, "directory")
	s.Fail = &engine.DataLossError{Relation: "edge", Rows: 7, Why: "it is gone"}
	s.run(t, "", "apply", "shop", program).wantError(t, ExitRefused, "7 rows", "--yes")
}

func TestPrintApplied(t *testing.T) {
	var a applied
	text := `{"revision":4,"dry_run":false,"changes":{
		"relations":{"added":["a"],"changed":["b"],"dropped":[{"name":"c","rows":1},{"name":"d","rows":0}],
			"columns":[{"relation":"b","column":"x","change":"moved"},{"relation":"b","column":"y","change":"renamed",
				"was":"z"},{"relation":"b","column":"v","change":"added"},{"relation":"b","column":"w","change":"not_nullable"},
				{"relation":"b","column":"u","change":"type","was":"int"}],
			"renamed":[{"from":"o","to":"p"}],"lost":[{"name":"b","rows":3},{"name":"c","rows":1}]},
		"rules":{"added":["e(X) <- a(X)"],"dropped":["f(X) <- c(X)"],"changed":["e"]},
		"views":{"added":["g"],"changed":["h"],"dropped":["i"],"touched":["m","n"],"rows":[
			{"view":"h","keys_ended":0,"entered":2,"left":1},{"view":"i","keys_ended":1,"entered":0,"left":0},
			{"view":"n","keys_ended":0,"entered":0,"left":5}]},
		"actions":{"added":["j"],"changed":["k"],"dropped":["l"]}}}`
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := &command{Command: &cobra.Command{}}
	c.SetOut(&out)
	if err := c.printApplied("shop", &a); err != nil {
		t.Fatal(err)
	}
	want := `graph shop: program applied at revision 4
  + relation a
  ~ relation b (3 rows lost): x moved, z renamed to y, v added, w not nullable, u no longer a int
  ~ relation p was o
  - relation c (1 row lost)
  - relation d
  + rule e(X) <- a(X)
  - rule f(X) <- c(X)
  + view g
  ~ view h
  - view i
  + action j
  ~ action k
  - action l
  * view m: it reads what changes
  * view h: 2 rows enter, 1 row leaves
  * view i: 1 watched key ends
  * view n: 5 rows leave
`
	if out.String() != want {
		t.Errorf("got\n%s", &out)
	}
}

func TestWrite(t *testing.T) {
	s := newServer(t)
	s.run(t, "", "write", "shop", "+edge[(1, 2), (2, 3)]").want(t, "revision 1: 2 rows inserted, 0 deleted\n")
	s.run(t, "-edge(1, 2)\n+edge(7, 8)\n", "write", "shop", "-").want(t, "revision 2: 1 row inserted, 1 deleted\n")
	s.run(t, "", "write", "shop", "+edge(9, 9)", "--json", "--idempotency-key", "k").want(t,
		`{"revision":3,"inserted":1,"deleted":0,"replayed":false}`+"\n")
	s.run(t, "", "write", "shop", "+edge(9, 9)", "--idempotency-key", "k").want(t,
		"revision 3: 1 row inserted, 0 deleted (written before, under the same idempotency key)\n")
	s.run(t, "", "write", "shop", "+edge(9, 8)", "--idempotency-key", "k").wantError(t, ExitRefused, "another body")
	s.run(t, "", "write", "shop", "+edge(1, ").wantError(t, ExitRefused, "line 1, column", "^")
	s.run(t, "", "write", "shop", `+edge(1, "x")`).wantError(t, ExitRefused, "edge", "dst", "int")
	s.run(t, "", "write", "shp", "+edge(1, 2)").wantError(t, ExitRefused, "heddle apply shp FILE")
	s.FailOnce = []error{admin.ErrBusy}
	s.run(t, "", "write", "shop", "+edge(1, 2)").wantError(t, ExitLater, "queue is full")
	if got := strings.Join(s.Facts("shop"), " "); got != "edge(2, 3) edge(7, 8) edge(9, 9)" {
		t.Errorf("facts %s", got)
	}
}

func TestLoad(t *testing.T) {
	s := newServer(t)
	s.run(t, "", "load", "shop", "edge", file(t, "e.csv", "dst,src\n1,2\n3,4\n")).want(t,
		"revision 1: 2 rows inserted, 0 deleted\n")
	s.run(t, "5,6\n", "load", "shop", "edge", "-", "--no-header").want(t,
		"revision 2: 1 row inserted, 0 deleted\n")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("src,dst\n7,8\n"))
	_ = z.Close()
	s.run(t, "", "load", "shop", "edge", file(t, "e.csv.gz", packed.String()), "--idempotency-key", "k").want(t,
		"revision 3: 1 row inserted, 0 deleted\n")
	bad := "src,dst\n" + strings.Repeat("1,x\n", 25)
	s.run(t, "", "load", "shop", "edge", file(t, "e.csv", bad)).wantError(t, ExitRefused,
		"25 errors; nothing was written", `line 2: row 1 of edge, column dst: expected an int, got "x"`, "and 5 more")
	s.run(t, "", "load", "shop", "egde", file(t, "e.csv", "")).wantError(t, ExitRefused, `did you mean "edge"?`)
	s.run(t, "", "load", "shop", "edge", "nothing.csv").wantError(t, ExitUsage, "nothing.csv")
	// A refusal arrives although the file is larger than what a connection buffers.
	large := file(t, "l.csv", "src,dts\n"+strings.Repeat("1,2\n", 200_000))
	s.run(t, "", "load", "shop", "edge", large).wantError(t, ExitRefused, `"dst"?`)
	tooLarge := file(t, "l.csv", "src,dst\n"+strings.Repeat("1,2\n", 4_000_000))
	s.run(t, "", "load", "shop", "edge", tooLarge).wantError(t, ExitRefused, "1048576 bytes")
	run(t, "", "load", "shop", "edge", tooLarge, "--server", s.address, "--key", wrongKey).wantError(t, ExitUnreachable)
}

func TestQuery(t *testing.T) {
	s := newServer(t)
	s.Answer = admin.QueryResult{
		Columns: []analysis.Column{
			{Name: "n", Type: value.Int}, {Name: "name", Type: value.String}, {Name: "ok", Type: value.Bool},
		},
		Rows: []value.Value{
			value.OfInt(7), value.OfString("a\x1b[2J"), value.OfBool(true),
			value.OfInt(1 << 60), value.OfString("Zoë"), value.OfBool(false),
		},
	}
	s.run(t, "", "query", "shop", "?edge(1, Y)").want(t, ""+
		"                  n  name      ok\n"+
		"                  7  a\\x1b[2J  true\n"+
		"1152921504606846976  Zoë       false\n"+
		"(2 rows at revision 0)\n")
	s.Answer.Truncated = true
	r := s.run(t, "", "query", "shop", "?edge(1, Y)", "--json")
	if !json.Valid([]byte(r.out)) || !strings.Contains(r.out, `[[7,"a\u001b[2J",true],["1152921504606846976"`) {
		t.Errorf("%v\n%s", r.err, r.out)
	}
	s.Answer = admin.QueryResult{}
	s.run(t, "", "query", "shop", "?edge($a, Y)", "-p", "a=1", "--limit", "5", "--min-revision", "3",
		"--deadline", "250ms").want(t, "(0 rows at revision 0)\n")
	got := s.Queries[len(s.Queries)-1]
	if got.Options.MaxRows != 5 || got.Options.MinRevision != 3 || len(got.Params) != 1 ||
		got.Params[0] != value.OfInt(1) {
		t.Errorf("asked %+v", got)
	}
	s.run(t, "", "query", "shop", "edge(1, Y)").wantError(t, ExitRefused, "line 1, column 1", "?")
	s.run(t, "", "query", "shop", "?edge($a, Y)", "-p", "a=x").wantError(t, ExitUsage,
		`parameter a: expected an int, got "x"`)
	s.run(t, "", "query", "shop", "?edge($a, Y)", "-p", "b=1").wantError(t, ExitUsage, "no parameter $b", "$a")
	s.run(t, "", "query", "shop", "?edge($a, Y)").wantError(t, ExitUsage, "parameter a: no value",
		"give it with --param a=VALUE")
	s.run(t, "", "query", "shop", "?edge($a, Y)", "-p", `a="1`).wantError(t, ExitUsage, "not closed")
	s.run(t, "", "query", "shop", "?edge(1, Y)", "--limit", "-1").wantError(t, ExitUsage,
		"--limit -1: expected 1 or more", "for example")
	s.run(t, "", "query", "shop", "?edge(1, Y)", "--limit", "100000000").wantError(t, ExitUsage,
		"--limit must be an integer from 0 to 10000, found 100000000")
	s.run(t, "", "query", "shop", "?edge(1, Y)", "--deadline", "0s").wantError(t, ExitUsage,
		"--deadline 0s: expected 1ms or more")
	s.run(t, "", "query", "shop", "?edge($a, Y)", "-p", "a").wantError(t, ExitUsage, "NAME=VALUE")
	s.FailOnce = []error{admin.ErrDeadline}
	s.run(t, "", "query", "shop", "?edge(1, Y)").wantError(t, ExitLater, "there was no answer within", "bind more arguments")
}

func TestParameterValue(t *testing.T) {
	for text, want := range map[string]string{
		"7": `7`, "-1.5e3": `-1.5e3`, "true": `true`, `"42"`: `"42"`, "x": `"x"`, "": `""`,
		"null": `"null"`, "[1]": `"[1]"`, `{"a":1}`: `"{\"a\":1}"`, "01": `"01"`, `a"b`: `"a\"b"`,
	} {
		if got := string(parameterValue(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestNoServer(t *testing.T) {
	s := newServer(t)
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	run(t, "", "query", "g", "?a(X)", "--server", dead.URL, "--key", wrongKey).wantError(t, ExitUnreachable,
		"there is no server at "+dead.URL, "heddle serve", "--server", "HEDDLE_SERVER")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	run(t, "", "query", "g", "?a(X)", "--server", other.URL, "--key", wrongKey).wantError(t, ExitUnreachable,
		"not a Heddle server's answer", "admin listener")
	run(t, "", "query", "g", "?a(X)", "--server", "ftp://x", "--key", wrongKey).wantError(t, ExitUsage, "server: \"ftp://x\" (flag --server)")
	run(t, "", "query", "g", "?a(X)", "--server", s.address).wantError(t, ExitUnreachable,
		"no admin key is given", "--key", "HEDDLE_KEY", "admin.key")
	run(t, "", "query", "g", "?a(X)", "--server", s.address, "--key", wrongKey).wantError(t, ExitUnreachable,
		"does not take the admin key from flag --key", "admin.key")
	t.Setenv("HEDDLE_KEY", wrongKey)
	run(t, "", "query", "g", "?a(X)", "--server", s.address).wantError(t, ExitUnreachable, "from environment HEDDLE_KEY")
	run(t, "", "query", "g", "--json").wantError(t, ExitUsage,
		"heddle query takes GRAPH QUERY, and 1 was given", "for example: heddle query shop")
	run(t, "", "query", "--limt", "1").wantError(t, ExitUsage, "--limt", "--help")
}

func TestEnvironment(t *testing.T) {
	s := newServer(t)
	t.Setenv("HEDDLE_SERVER", s.address)
	t.Setenv("HEDDLE_KEY", testKey)
	run(t, "", "write", "shop", "+edge(1, 2)").want(t, "revision 1: 1 row inserted, 0 deleted\n")
}

func TestKeyOfTheDataDirectory(t *testing.T) {
	s := newServer(t)
	if err := os.Mkdir("heddle-data", 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("heddle-data", "admin.key")
	if err := os.WriteFile(path, []byte(testKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := []string{"write", "shop", "+edge(1, 2)", "--server", s.address}
	run(t, "", write...).want(t, "revision 1: 1 row inserted, 0 deleted\n")
	t.Setenv("HEDDLE_ADMIN_KEY", wrongKey)
	run(t, "", write...).wantError(t, ExitUnreachable, "from environment HEDDLE_ADMIN_KEY")
	t.Setenv("HEDDLE_ADMIN_KEY", "")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "", write...).wantError(t, ExitUsage, "may be read by others")
	// The key of this machine's server is not sent elsewhere.
	run(t, "", "write", "shop", "+edge(1, 2)", "--server", "http://192.0.2.1:4444").
		wantError(t, ExitUnreachable, "no admin key is given")
}

func TestConfigFile(t *testing.T) {
	s := newServer(t)
	path := file(t, "client.toml", "server = \""+s.address+"\"\nkey = \""+testKey+"\"\n")
	run(t, "", "write", "shop", "+edge(1, 2)", "--config", path).
		want(t, "revision 1: 1 row inserted, 0 deleted\n")
	run(t, "", "write", "shop", "+edge(1, 2)", "--config", path, "--key", wrongKey).
		wantError(t, ExitUnreachable, "from flag --key")
	run(t, "", "write", "shop", "+edge(1, 2)", "--config", file(t, "x.toml", "sever = 1\n")).
		wantError(t, ExitUsage, "sever")
}

func TestErrorsAsJSON(t *testing.T) {
	s := newServer(t)
	r := s.run(t, "", "write", "shop", "+edge(1, ", "--json")
	p := new(admin.Problem)
	if err := json.Unmarshal([]byte(r.err.Error()), p); err != nil || p.Code != "program_invalid" || r.out != "" {
		t.Errorf("%v %q\n%v", err, r.out, r.err)
	}
	r = run(t, "", "write", "shop", "+edge(1, 2)", "--json", "--server", s.address)
	if err := json.Unmarshal([]byte(r.err.Error()), p); err != nil || p.Code != "client" || p.Hint == "" ||
		strings.Contains(r.err.Error(), "status") {
		t.Errorf("%v\n%v", err, r.err)
	}
	var out bytes.Buffer
	if code := Report(&out, r.err); code != ExitUnreachable || !json.Valid(out.Bytes()) {
		t.Errorf("code %d\n%s", code, &out)
	}
}

func TestInterrupted(t *testing.T) {
	s := newServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := newClient(settings{server: s.address, key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.do(ctx, request{method: "GET", path: "/livez"})
	if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Text, "interrupted") {
		t.Errorf("%v", err)
	}
}

func TestCommandsHaveExamples(t *testing.T) {
	for _, c := range NewClientCommands() {
		if c.Example == "" || c.Long == "" || c.Flags().Lookup("json") == nil {
			t.Errorf("%s lacks an example, a long help or --json", c.Name())
		}
	}
}
