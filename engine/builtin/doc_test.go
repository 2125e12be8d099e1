package builtin

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/rules/functions.md")

const docPath = "../../docs/rules/functions.md"

const docHead = `# Functions

Written from ` + "`engine/builtin`" + ` by ` + "`go test ./engine/builtin -update`" + `.

A function of which an argument is null is null. A call that fails makes a *row error*: for that one binding of the
variables the clause gives no row, and the error is counted and named until its cause is gone. Results of strings
and bytes are at most 1 MiB long. Functions of floats may differ in the last digit from one kind of processor to
another; on one machine they never do.

| code of a row error | meaning |
|---|---|
| ` + "`overflow`" + ` | the result is no int of 64 bits |
| ` + "`division_by_zero`" + ` | |
| ` + "`bad_cast`" + ` | the argument does not spell a value of the type |
| ` + "`not_finite`" + ` | the result is no number, or too large for a float |
| ` + "`too_long`" + ` | the result is over 1 MiB |
`

const aggregatesHead = `
## Aggregates

An aggregate stands in the head of a rule: ` + "`total(Shop, sum<Price>) <- sale(_, Shop, Price)`" + `. The other columns of the
head are the group. Each clause aggregates by itself, over the different bindings of all variables of its body, ` + "`_`" + `
included; bindings in which the argument is null are left out. A group without bindings gives no row.

| aggregate | result |
|---|---|
`

func TestDocIsWhatTheSpecsSay(t *testing.T) {
	var page bytes.Buffer
	page.WriteString(docHead)
	group := Group("")
	for _, s := range all {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&page, "\n## %s\n", group)
		}
		writeSpec(&page, s)
	}
	page.WriteString(aggregatesHead)
	for _, a := range aggregates {
		forms := strings.ReplaceAll(a.Form, ">, ", ">`, `")
		fmt.Fprintf(&page, "| `%s` | %s |\n", forms, a.Doc)
	}
	if *update {
		if err := os.WriteFile(docPath, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, page.Bytes()) {
		t.Errorf("%s is not what the specs say; run go test ./engine/builtin -update", docPath)
	}
}

func writeSpec(page *bytes.Buffer, s *Spec) {
	title := s.Name + "(" + strings.Join(s.Params, ", ") + ")"
	if s.Group == Operators {
		title = s.Params[0] + " " + s.Name + " " + s.Params[1]
	}
	fmt.Fprintf(page, "\n### `%s`\n\n%s\n\n```\n", title, s.Doc)
	for i := range s.Functions {
		fmt.Fprintln(page, s.Functions[i].signature())
	}
	page.WriteString("\n")
	for _, e := range s.Examples {
		result := "= " + e.Want.String()
		if e.Fails != "" {
			result = "  row error " + e.Fails
		}
		fmt.Fprintf(page, "%s %s\n", callText(s.Name, e.Args), result)
	}
	page.WriteString("```\n")
}
