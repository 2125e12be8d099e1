package analysis

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/parse"
)

var update = flag.Bool("update", false, "rewrite golden files")

// sections reads a golden file: a preface, then sections "=== kind: name", the
// text, a line "---" and what is expected, which -update rewrites by result.
func sections(t *testing.T, file string, result func(t *testing.T, kind, src string) string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(data), "=== ")
	var out strings.Builder
	out.WriteString(head)
	names := map[string]bool{}
	for section := range strings.SplitSeq(rest, "\n=== ") {
		title, body, _ := strings.Cut(section, "\n")
		src, want, _ := strings.Cut(body, "\n---\n")
		kind, name, _ := strings.Cut(title, ": ")
		if names[name] {
			t.Errorf("two sections are called %q", name)
		}
		names[name] = true
		got := result(t, kind, src)
		out.WriteString("=== " + title + "\n" + src + "\n---\n" + got + "\n\n")
		t.Run(name, func(t *testing.T) {
			if !*update && got != strings.TrimRight(want, "\n") {
				t.Errorf("of\n%s\ngot\n%s\nwant\n%s", src, got, want)
			}
		})
	}
	if *update {
		text := strings.TrimRight(out.String(), "\n") + "\n"
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// base is the program that queries and transactions of the tests meet.
const base = `+edge(src: int, dst: int)
+label(node: int, name: string)
+price(item: string, amount: float)
+flag(node: int, on: bool)
r1(X, Y) <- edge(X, Y), label(X, "hot")
reach(X, Y) <- edge(X, Y)
reach(X, Z) <- reach(X, Y), edge(Y, Z)
view hot($head: int) := ?r1($head, Y)`

func mustAnalyse(t testing.TB, src string) *Program {
	t.Helper()
	p, err := analyse(src)
	if err != nil {
		t.Fatalf("of\n%s\n%s", src, detailOf(err))
	}
	return p
}

func analyse(src string) (*Program, error) {
	f, err := parse.Program(src)
	if err != nil {
		return nil, err
	}
	return Analyse(f, src)
}

func analyseQuery(p *Program, src string) (*Query, error) {
	q, err := parse.Query(src)
	if err != nil {
		return nil, err
	}
	return AnalyseQuery(p, q)
}

func checkTransaction(p *Program, src string) ([]Statement, error) {
	tx, err := parse.Transaction(src)
	if err != nil {
		return nil, err
	}
	return CheckTransaction(p, tx)
}

func detailOf(err error) string {
	if errs, ok := errors.AsType[parse.Errors](err); ok {
		return errs.Detail()
	}
	return "not a parse.Errors: " + err.Error()
}

func TestErrors(t *testing.T) {
	program := mustAnalyse(t, base)
	sections(t, "testdata/errors.txt", func(t *testing.T, kind, src string) string {
		var err error
		switch kind {
		case "program":
			_, err = analyse(src)
		case "after base":
			_, err = analyse(base + "\n" + src)
		case "query":
			_, err = analyseQuery(program, src)
		case "transaction":
			_, err = checkTransaction(program, src)
		default:
			t.Fatalf("no kind of text is called %q", kind)
		}
		if err == nil {
			return "accepted"
		}
		return detailOf(err)
	})
}
