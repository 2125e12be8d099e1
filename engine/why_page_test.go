package engine

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
)

// TestWhyPage runs the commands of docs/rules/why.md on its program: the block behind
// each must be what it prints. -update rewrites the blocks.
func TestWhyPage(t *testing.T) {
	const name = "../docs/rules/why.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{engine: New(nil)}
	blocks := strings.Split(string(text), "```")
	for i := 1; i < len(blocks); i += 2 {
		kind, body, _ := strings.Cut(blocks[i], "\n")
		switch kind {
		case "heddle":
			if out := p.deploy(body, false); p.revision != 1 {
				t.Fatal(out)
			}
			_, err := p.engine.Transact(2, []analysis.Statement{seedOf(p.engine.Program())}, nil,
				TransactOptions{})
			if err != nil {
				t.Fatal(err)
			}
		case "sh":
			blocks[i+2] = "text\n" + p.typed(body) + "(at revision 2)\n"
		}
	}
	got := strings.Join(blocks, "```")
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(text) {
		t.Errorf("the page should be\n%s", got)
	}
}

func seedOf(p *analysis.Program) analysis.Statement {
	var s analysis.Statement
	for _, f := range p.Seed {
		s.Ops = append(s.Ops, analysis.Op{Relation: f.Relation, Row: f.Row})
	}
	return s
}

// typed returns what a command line prints.
func (p *player) typed(line string) string {
	line = strings.TrimSuffix(line, "\n")
	words := strings.SplitN(line, " ", 4)
	about := strings.Trim(words[3], "'")
	if words[1] == "explain" {
		plan, err := p.engine.Explain(about)
		if err != nil {
			return err.Error()
		}
		return plan.String()
	}
	q, err := p.parseQuery(about)
	if err != nil {
		return err.Error()
	}
	if words[1] == "why" {
		proof, err := p.engine.Why(q, nil, WhyOptions{})
		if err != nil {
			return err.Error()
		}
		proof.Query = about
		return fmt.Sprint(proof)
	}
	absence, err := p.engine.WhyNot(q, nil, WhyOptions{})
	if err != nil {
		return err.Error()
	}
	absence.Query = about
	return fmt.Sprint(absence)
}
