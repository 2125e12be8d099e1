package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/config.md")

const docPath = "../../docs/config.md"

const docIntro = `# Settings

Written from the comments of ` + "`host/config/config.go`" + ` by ` + "`go test ./host/config -update`" + `.

Each setting has one name and three spellings: ` + "`queue_transactions`" + ` in the file, ` + "`HEDDLE_QUEUE_TRANSACTIONS`" + ` in the
environment, ` + "`--queue-transactions`" + ` as a flag. The default comes first, then the file, then the environment, then the flag;
the last one counts. An empty variable counts as none. The file is TOML, names at its top level, named by ` + "`--config`" + ` or else
by ` + "`HEDDLE_CONFIG`" + `; without either there is none. A name that is no setting is an error. All problems are reported at once,
each with its source and what is allowed.

No setting changes while the process runs.
`

var docGroups = []struct{ group, title string }{
	{GroupServer, "The server"},
	{GroupLimits, "Limits of the server"},
	{GroupClient, "Commands that talk to a server"},
}

// TestDocument holds docs/config.md to the fields.
func TestDocument(t *testing.T) {
	got := document(t)
	if *update {
		if err := os.WriteFile(docPath, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the fields say; run go test ./host/config -update", docPath)
	}
}

func document(t *testing.T) string {
	comments := fieldComments(t)
	var b strings.Builder
	b.WriteString(docIntro)
	for _, g := range docGroups {
		fmt.Fprintf(&b, "\n## %s\n", g.title)
		for _, f := range fields {
			if f.Group != g.group {
				continue
			}
			text, ok := strings.CutPrefix(comments[f.GoName], f.GoName+" is ")
			if !ok {
				t.Errorf("the comment of %s does not begin with its name and is", f.GoName)
			}
			def := "`" + f.Default + "`"
			if f.Default == "" {
				def = "empty"
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", f.Name, strings.ToUpper(text[:1])+text[1:])
			fmt.Fprintf(&b, "- default: %s\n- allowed: %s\n- also: `%s`, `--%s`\n", def, f.Allowed(), f.Variable(), f.Flag())
		}
	}
	return b.String()
}

// fieldComments returns the comment of each field of Config.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Config" {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			for _, name := range f.Names {
				comments[name.Name] = strings.TrimSpace(f.Doc.Text())
			}
		}
		return false
	})
	return comments
}
