package host_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// bannedCall is a call that a layer may not make outside tests. The call is
// found by the package's name at the call, which is the last element of its
// path here: nobody renames these.
type bannedCall struct {
	rule  string
	calls []string // "package.Function"; a final * stands for any ending
	scope string   // "" is everywhere
	but   func(f *sourceFile) bool
	why   string
}

var bannedCalls = []bannedCall{
	{
		rule: "clock", scope: "engine",
		calls: []string{
			"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After*",
			"time.Tick", "time.New*",
		},
		why: "the engine takes time from its caller, so that a replay gives the same answer",
	},
	{
		rule: "background", calls: []string{"context.Background", "context.TODO"},
		but: isMain,
		why: "take the caller's context, or say what survives the caller",
	},
	{
		rule: "print", calls: []string{"fmt.Print*"},
		but: func(f *sourceFile) bool { return isMain(f) || within(f.rel, "plugins") },
		why: "write to the writer that you were given, or log",
	},
}

func isMain(f *sourceFile) bool { return f.pkgName == "main" }

func TestBannedCalls(t *testing.T) {
	eachFile(t, func(f *sourceFile) {
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				if within(f.rel, "engine") {
					f.report(t, n.Pos(), "goroutine",
						"go statement: the engine takes parallelism from its caller")
				}
			case *ast.CallExpr:
				checkCall(t, f, n)
			}
			return true
		})
	})
}

func checkCall(t *testing.T, f *sourceFile, call *ast.CallExpr) {
	t.Helper()
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		if fun.Name == "panic" && len(call.Args) == 1 && !constantText(call.Args[0]) {
			f.report(t, call.Pos(), "panic",
				"panic with text made at run time: name the broken invariant in a constant")
		}
	case *ast.SelectorExpr:
		pkg, ok := fun.X.(*ast.Ident)
		if !ok {
			return
		}
		name := pkg.Name + "." + fun.Sel.Name
		for _, b := range bannedCalls {
			if b.scope != "" && !within(f.rel, b.scope) || b.but != nil && b.but(f) {
				continue
			}
			if slices.ContainsFunc(b.calls, func(c string) bool { return matches(name, c) }) {
				f.report(t, call.Pos(), b.rule, "%s: %s", name, b.why)
			}
		}
	}
}

// matches reports whether name is pattern, whose final * stands for any ending.
func matches(name, pattern string) bool {
	if stem, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, stem)
	}
	return name == pattern
}

// constantText reports whether an expression is a string literal or a sum of
// such.
func constantText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return e.Op == token.ADD && constantText(e.X) && constantText(e.Y)
	case *ast.ParenExpr:
		return constantText(e.X)
	}
	return false
}

func TestPackageComments(t *testing.T) {
	for _, p := range listPackages(t) {
		switch {
		case len(p.GoFiles) == 0:
			// A directory of tests alone.
		case p.Doc == "":
			t.Errorf("%s: no package comment: what it is, what it never does, who calls it", p.rel)
		case p.Name != "main" && !strings.HasPrefix(p.Doc, "Package "+p.Name+" "):
			t.Errorf("%s: the package comment begins %.40q, want \"Package %s …\"", p.rel, p.Doc, p.Name)
		}
	}
}

func TestExportedItemsAreDocumented(t *testing.T) {
	eachFile(t, func(f *sourceFile) {
		if isMain(f) {
			return
		}
		for _, d := range f.tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) && !selfEvident(d) {
					f.report(t, d.Pos(), "doc", "%s is exported without a comment", d.Name.Name)
				}
			case *ast.GenDecl:
				checkDeclDoc(t, f, d)
			}
		}
	})
}

func checkDeclDoc(t *testing.T, f *sourceFile, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if d.Doc == nil && s.Doc == nil && s.Name.IsExported() {
				f.report(t, s.Pos(), "doc", "type %s is exported without a comment", s.Name.Name)
			}
		case *ast.ValueSpec:
			// One comment may introduce a group of constants.
			if d.Doc == nil && s.Doc == nil && s.Comment == nil && s.Names[0].IsExported() {
				f.report(t, s.Pos(), "doc", "%s is exported without a comment", s.Names[0].Name)
			}
		}
	}
}

// selfEvident reports whether a method is one that the standard library's
// interfaces define: its meaning is theirs.
func selfEvident(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains(
		[]string{"Error", "Unwrap", "Is", "String", "Len", "Less", "Swap"}, d.Name.Name)
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// Sizes that a reader can hold; generated files are not read.
const (
	functionLinesMax = 70
	fileLinesMax     = 600
	lineColumnsMax   = 100
)

func TestSizes(t *testing.T) {
	eachFile(t, func(f *sourceFile) {
		if ast.IsGenerated(f.tree) {
			return
		}
		if n := len(f.lines) - 1; n > fileLinesMax {
			t.Errorf("%s: %d lines, at most %d", f.name, n, fileLinesMax)
		}
		file := f.fset.File(f.tree.Pos())
		for i, line := range f.lines {
			// A tab counts as gofmt's readers see it.
			columns := len([]rune(string(line))) + 3*strings.Count(string(line), "\t")
			// Neither an address nor a struct tag can be wrapped.
			whole := strings.Contains(string(line), "://") || strings.HasSuffix(string(line), "\"`")
			if columns > lineColumnsMax && !whole {
				f.report(t, file.LineStart(i+1), "columns", "%d columns, at most %d", columns, lineColumnsMax)
			}
		}
		for _, d := range f.tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
			if n > functionLinesMax {
				f.report(t, fn.Pos(), "function", "%s has %d lines, at most %d",
					fn.Name.Name, n, functionLinesMax)
			}
		}
	})
}
