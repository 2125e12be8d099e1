package parse

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestErrors reads testdata/errors.txt: sections "=== kind: name", the text, a
// line "---", and the detail of its errors, which -update rewrites.
func TestErrors(t *testing.T) {
	const file = "testdata/errors.txt"
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
		got := detail(t, kind, src)
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

// detail returns the errors of src, "accepted" if there are none.
func detail(t *testing.T, kind, src string) string {
	var err error
	switch kind {
	case "program":
		_, err = Program(src)
	case "transaction":
		_, err = Transaction(src)
	case "query":
		_, err = Query(src)
	default:
		t.Fatalf("no kind of text is called %q", kind)
	}
	if err == nil {
		return "accepted"
	}
	errs, ok := errors.AsType[Errors](err)
	if !ok {
		t.Fatalf("%T is not an Errors", err)
	}
	if one, ok := errors.AsType[*Error](err); !ok || one != errs[0] {
		t.Errorf("errors.As finds %v, want the first error", one)
	}
	return errs.Detail()
}

func TestErrorInLongLine(t *testing.T) {
	_, err := Transaction("\t+edge[" + strings.Repeat("(1, 2), ", 1000) + "(X, 2), " +
		strings.Repeat("(1, 2), ", 1000) + "(3, 4)]")
	e := err.(Errors)[0]
	if e.Column != 8009 {
		t.Errorf("column %d, want 8009", e.Column)
	}
	lines := strings.Split(e.Detail(), "\n")
	caret := strings.IndexByte(lines[2], '^')
	if runes := []rune(lines[1]); len(runes) > 140 || runes[caret] != 'X' {
		t.Errorf("the caret does not point at X:\n%s", e.Detail())
	}
}

func TestErrorAfterTab(t *testing.T) {
	_, err := Program("r(X) <-\n\te(X),\tx > 1")
	lines := strings.Split(err.(Errors)[0].Detail(), "\n")
	if want := "      | \t     \t^"; lines[2] != want {
		t.Errorf("caret line %q, want %q", lines[2], want)
	}
}

func TestNotUTF8(t *testing.T) {
	_, err := Program("+e(a: int)\nr(\"é\xff\")")
	if want := "line 2, column 5: the text is not UTF-8"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
