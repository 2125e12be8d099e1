package host_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tests of this file hold the shape of the tree: who may import whom, what
// a layer may not call, and that every package and exported item says what it
// is. They read the tree by `go list`, which the test cache does not see:
// `make arch` runs them with -count=1.
//
// A line may be excused by a directive on it or on the line above, with a
// reason that a reviewer can judge:
//
//	//arch:allow background: the flush survives the request that started it

// modulePath is the prefix of every package of ours.
const modulePath = "github.com/heddle-live/heddle"

// layer says what the packages of a subtree may import. The first layer whose
// scope holds a package decides for it.
type layer struct {
	scope    string   // subtree, relative to the module; "." is the root alone
	ours     []string // subtrees of ours it may import
	noStd    []string // standard packages (with what lies below) it may not
	external bool     // may import modules of others
	why      string
}

var layers = []layer{
	{
		scope: "engine", ours: []string{"engine"},
		noStd: []string{"os", "net", "log", "syscall", "io/ioutil", "math/rand", "crypto/rand"},
		why:   "the engine computes: its caller gives it facts, time and order",
	},
	{
		scope: "protocol", ours: []string{"protocol"}, external: true,
		why: "the protocol never learns what a frame means",
	},
	{scope: "sdk/frame", ours: []string{"sdk/frame"}, why: "others import it: standard library only"},
	{
		scope: "sdk/client", ours: []string{"protocol", "sdk"}, external: true,
		why: "a client speaks the protocol and reads frames; it holds no engine",
	},
	{scope: "sdk", ours: []string{"sdk"}, why: "others import it: standard library only"},
	{scope: "plugins", ours: []string{"sdk"}, external: true, why: "plugins are guests"},
	{
		scope: "admin", ours: []string{"admin", "engine", "sdk/frame"}, external: true,
		why: "admin declares the service it needs; the host provides it",
	},
	{
		scope: "bench", ours: []string{"bench", "engine", "protocol", "admin", "sdk"}, external: true,
		why: "a bench meets the server as its users do, from outside",
	},
	{
		scope: "host", ours: []string{"host", "engine", "protocol", "admin", "sdk", "examples"}, external: true,
		why: "the host builds every part; only main builds the host",
	},
	{scope: "examples", ours: []string{"sdk"}, external: true, why: "examples use what users use"},
	{scope: ".", ours: []string{"host", "bench"}, external: true, why: "main only starts and stops"},
}

// owner names the only subtrees that may import a module of others, tests
// included: a library that is known in one place can be replaced in one place.
type owner struct {
	module string
	scopes []string
	why    string
}

var owners = []owner{
	{
		"github.com/quic-go/quic-go",
		[]string{"protocol/quic", "bench/floor"},
		"QUIC is behind protocol.Session; the floor measures the library under it, bare",
	},
	{
		"github.com/quic-go/webtransport-go",
		[]string{"protocol/quic", "bench/floor"},
		"as QUIC",
	},
	{"github.com/coder/websocket", []string{"protocol/qmux"}, "WebSocket is behind protocol.Session"},
	{
		"github.com/cockroachdb/pebble",
		[]string{"host/journal/pebble", "bench/floor"},
		"storage is behind the journal; the floor measures the library under it, bare",
	},
	{"github.com/tetratelabs/wazero", []string{"host/wasm"}, "guests live behind the sandbox"},
}

func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		l := layerOf(p.rel)
		if l == nil {
			t.Errorf("%s: no layer of the table holds it", p.rel)
			continue
		}
		for _, imp := range p.Imports {
			if problem := checkImport(l, p.rel, imp, false); problem != "" {
				t.Error(problem)
			}
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			if problem := checkImport(l, p.rel, imp, true); problem != "" {
				t.Error(problem)
			}
		}
	}
}

// checkImport returns what is wrong with a package's import, "" if nothing.
// Tests are held to the same directions, but may use any standard package.
func checkImport(l *layer, rel, imp string, test bool) string {
	for _, o := range owners {
		if within(imp, o.module) && !slices.ContainsFunc(o.scopes, func(s string) bool { return within(rel, s) }) {
			return fmt.Sprintf("%s imports %s: only %s may (%s)",
				rel, imp, strings.Join(o.scopes, ", "), o.why)
		}
	}
	switch {
	case within(imp, modulePath):
		to := strings.TrimPrefix(strings.TrimPrefix(imp, modulePath), "/")
		if to == rel || slices.ContainsFunc(l.ours, func(s string) bool { return within(to, s) }) {
			return ""
		}
		return fmt.Sprintf("%s imports %s: %s", rel, to, l.why)
	case strings.Contains(strings.Split(imp, "/")[0], "."):
		if l.external {
			return ""
		}
		return fmt.Sprintf("%s imports %s: no module of others here: %s", rel, imp, l.why)
	case !test && slices.ContainsFunc(l.noStd, func(s string) bool { return within(imp, s) }):
		return fmt.Sprintf("%s imports %s: %s", rel, imp, l.why)
	}
	return ""
}

func TestImportTableItself(t *testing.T) {
	tests := []struct {
		name, rel, imp string
		ok             bool
	}{
		{"engine to protocol", "engine/value", modulePath + "/protocol", false},
		{"engine to engine", "engine/dataflow", modulePath + "/engine/value", true},
		{"engine to os", "engine", "os/exec", false},
		{"protocol to engine", "protocol/lite", modulePath + "/engine", false},
		{"quic-go outside its package", "protocol/lite", "github.com/quic-go/quic-go/http3", false},
		{"quic-go inside", "protocol/quic", "github.com/quic-go/quic-go", true},
		{"pebble in host", "host/ingest", "github.com/cockroachdb/pebble/v2", false},
		{"frame to others", "sdk/frame", "github.com/google/uuid", false},
		{"admin to host", "admin", modulePath + "/host/journal", false},
		{"bench to host", "bench/views", modulePath + "/host", false},
		{"host to bench", "host/cli", modulePath + "/bench", false},
		{"main to host", ".", modulePath + "/host", true},
		{"similar name is not within", "protocol", modulePath + "/protocolx", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := checkImport(layerOf(tt.rel), tt.rel, tt.imp, false)
			if (got == "") != tt.ok {
				t.Errorf("checkImport(%s, %s) = %q, want ok=%v", tt.rel, tt.imp, got, tt.ok)
			}
		})
	}
}

func layerOf(rel string) *layer {
	for i := range layers {
		if within(rel, layers[i].scope) {
			return &layers[i]
		}
	}
	return nil
}

// within reports whether path is scope or lies below it.
func within(path, scope string) bool {
	return path == scope || strings.HasPrefix(path, scope+"/")
}

// listedPackage is what `go list -json` says of a package, and where it is in
// the module ("." is the root).
type listedPackage struct {
	ImportPath, Dir, Name, Doc         string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
	rel                                string
}

func listPackages(t *testing.T) []listedPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e",
		"-json=ImportPath,Dir,Name,Doc,GoFiles,Imports,TestImports,XTestImports", modulePath+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var all []listedPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list output: %v", err)
		}
		p.rel = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, modulePath), "/")
		if p.rel == "" {
			p.rel = "."
		}
		all = append(all, p)
	}
	if len(all) < 2 {
		t.Fatalf("go list found %d packages", len(all))
	}
	return all
}

// sourceFile is one non-test file with its syntax.
type sourceFile struct {
	rel     string // of its package
	pkgName string
	name    string // to print, relative to the module
	fset    *token.FileSet
	tree    *ast.File
	allowed map[int]string // line -> rules excused there
	lines   [][]byte
}

// eachFile calls visit for every non-test Go file of the module.
func eachFile(t *testing.T, visit func(f *sourceFile)) {
	t.Helper()
	for _, p := range listPackages(t) {
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			fset := token.NewFileSet()
			tree, err := parser.ParseFile(fset, name, text, parser.ParseComments)
			if err != nil {
				t.Errorf("%s: %v", p.rel, err)
				continue
			}
			visit(&sourceFile{
				rel: p.rel, pkgName: p.Name, name: filepath.Join(p.rel, name),
				fset: fset, tree: tree, allowed: allowances(fset, tree), lines: bytes.Split(text, []byte("\n")),
			})
		}
	}
}

// allowances collects the //arch:allow directives of a file, by line. One
// without a reason excuses nothing.
func allowances(fset *token.FileSet, tree *ast.File) map[int]string {
	m := map[int]string{}
	for _, group := range tree.Comments {
		for _, c := range group.List {
			rule, reason, _ := strings.Cut(strings.TrimPrefix(c.Text, "//arch:allow "), ":")
			if !strings.HasPrefix(c.Text, "//arch:allow ") || strings.TrimSpace(reason) == "" {
				continue
			}
			line := fset.Position(c.Pos()).Line
			m[line] += " " + rule
			m[line+1] += " " + rule
		}
	}
	return m
}

func (f *sourceFile) report(t *testing.T, at token.Pos, rule, format string, args ...any) {
	t.Helper()
	line := f.fset.Position(at).Line
	if slices.Contains(strings.Fields(f.allowed[line]), rule) {
		return
	}
	t.Errorf("%s:%d: %s (rule %s)", f.name, line, fmt.Sprintf(format, args...), rule)
}
