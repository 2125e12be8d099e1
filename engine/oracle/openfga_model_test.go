package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// The translation of OpenFGA's models into rules. Relation R of type T becomes
// r_T_R(Object, UserType, User, UserRelation): who stands in the relation, where a
// user of relation "" is itself and one of another relation is a userset. A wildcard
// is the user "*", and stands for all subjects of its type: those that tuples or
// questions name.

const fgaHead = `+tuple(otype: string, object: string, relation: string, utype: string, ` +
	`user: string, urelation: string)
+asked(utype: string, user: string, urelation: string)
+filtered(utype: string, urelation: string)
subject(T, U, R) <- tuple(_, _, _, T, U, R)
subject(T, U, R) <- asked(T, U, R)
subject(T, U, R) <- filtered(T, R), tuple(T, U, _, _, _, _)
subject(T, U, R) <- filtered(T, R), tuple(_, _, _, T, U, _)
subject(T, U, R) <- filtered(T, R), asked(T, U, _)
`

// fgaModel is a model: for each type, its relations in order.
type fgaModel struct {
	types   []string
	defined map[string][]fgaDefinition
	rules   strings.Builder
	made    int // auxiliary relations
	// levels, if not 0, is how often rules are unrolled: usersets of others at one
	// level are those of the level below. That stratifies a model in which a relation
	// excludes itself on the way through other objects. What holds at the last two
	// levels holds; where a relation of one object excludes itself, levels alternate.
	levels int
	level  int // of the rules that are being made
}

type fgaDefinition struct {
	relation string
	body     *fgaNode
}

// fgaNode is a userset: one of its fields says what kind.
type fgaNode struct {
	direct   []string // type, type:* and type#relation
	computed string
	from     string // the tupleset of a computed relation
	operator string // or, and, but not
	operands []*fgaNode
}

// parseFGA reads the models' language, as far as the tests write it.
func parseFGA(text string) (*fgaModel, error) {
	m := &fgaModel{defined: map[string][]fgaDefinition{}}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "type":
			m.types = append(m.types, rest)
		case "define":
			name, body, _ := strings.Cut(rest, ":")
			p := &fgaParser{tokens: fgaTokens(body)}
			d := fgaDefinition{strings.TrimSpace(name), p.union()}
			if p.err != nil || len(p.tokens) > 0 {
				return nil, fmt.Errorf("%q: %w, at %v", line, p.err, p.tokens)
			}
			last := m.types[len(m.types)-1]
			m.defined[last] = append(m.defined[last], d)
		case "", "model", "schema", "relations":
		default:
			if !strings.HasPrefix(line, "#") {
				return nil, fmt.Errorf("%q is not understood", line)
			}
		}
	}
	return m, nil
}

func fgaTokens(text string) []string {
	for _, mark := range []string{"(", ")", "[", "]", ","} {
		text = strings.ReplaceAll(text, mark, " "+mark+" ")
	}
	return strings.Fields(text)
}

type fgaParser struct {
	tokens []string
	err    error
}

func (p *fgaParser) accept(words ...string) bool {
	if len(p.tokens) < len(words) || !slices.Equal(p.tokens[:len(words)], words) {
		return false
	}
	p.tokens = p.tokens[len(words):]
	return true
}

// union reads operands with operators of one kind between them.
func (p *fgaParser) union() *fgaNode {
	n := p.operand()
	for p.err == nil {
		operator := ""
		switch {
		case p.accept("or"):
			operator = "or"
		case p.accept("and"):
			operator = "and"
		case p.accept("but", "not"):
			operator = "but not"
		default:
			return n
		}
		if n.operator != operator || operator == "but not" {
			n = &fgaNode{operator: operator, operands: []*fgaNode{n}}
		}
		n.operands = append(n.operands, p.operand())
	}
	return n
}

func (p *fgaParser) operand() *fgaNode {
	n := &fgaNode{}
	switch {
	case p.accept("("):
		inner := p.union()
		if !p.accept(")") && p.err == nil {
			p.err = fmt.Errorf("no closing parenthesis")
		}
		// A chain goes on behind parentheses with a node of its own.
		return &fgaNode{operator: "or", operands: []*fgaNode{inner}}
	case p.accept("["):
		for len(p.tokens) > 0 && !p.accept("]") {
			if !p.accept(",") {
				n.direct = append(n.direct, p.tokens[0])
				p.tokens = p.tokens[1:]
			}
		}
	case len(p.tokens) > 0:
		n.computed = p.tokens[0]
		if p.tokens = p.tokens[1:]; p.accept("from") && len(p.tokens) > 0 {
			n.from = p.tokens[0]
			p.tokens = p.tokens[1:]
		}
	default:
		p.err = fmt.Errorf("an operand is missing")
	}
	return n
}

// has reports whether a type has a relation.
func (m *fgaModel) has(of, relation string) bool {
	return slices.ContainsFunc(m.defined[of], func(d fgaDefinition) bool {
		return d.relation == relation
	})
}

func fgaRelation(of, relation string) string { return "r_" + of + "_" + relation }

// same names a relation at the level of its rule, and other at the level of other
// objects.
func (m *fgaModel) same(of, relation string) string {
	if m.levels == 0 {
		return fgaRelation(of, relation)
	}
	return fmt.Sprintf("%s_%d", fgaRelation(of, relation), m.level)
}

func (m *fgaModel) other(of, relation string) string {
	switch {
	case m.levels == 0:
		return fgaRelation(of, relation)
	case m.level == 0:
		return "nobody"
	default:
		return fmt.Sprintf("%s_%d", fgaRelation(of, relation), m.level-1)
	}
}

func (m *fgaModel) rule(format string, args ...any) { fmt.Fprintf(&m.rules, format+"\n", args...) }

// program returns the model as a program.
func (m *fgaModel) program() string {
	m.rules.WriteString(fgaHead)
	if m.levels > 0 {
		m.rule(`nobody(O, T, U, R) <- tuple("", O, "", T, U, R)`)
	}
	for m.level = 0; m.level <= m.levels; m.level++ {
		for _, of := range m.types {
			for _, d := range m.defined[of] {
				head := m.same(of, d.relation)
				// A userset has the relation that it is defined by.
				m.rule(`%s(O, "%s", O, "%s") <- subject("%s", O, "%s")`,
					head, of, d.relation, of, d.relation)
				m.node(head, of, d.relation, d.body)
				if m.level == m.levels {
					m.views(of, d.relation)
				}
			}
		}
	}
	return m.rules.String()
}

// views are the questions: does a user stand in a relation, to what, and who does.
func (m *fgaModel) views(of, relation string) {
	r := fgaRelation(of, relation)
	if m.levels > 0 {
		m.rule("%s(O, T, U, R) <- %s(O, T, U, R), %s(O, T, U, R)",
			r, m.same(of, relation), m.other(of, relation))
	}
	m.rule("view check_%s($o: string, $t: string, $u: string, $r: string) := ?%s($o, $t, $u, $r)",
		r, r)
	m.rule("view objects_%s($t: string, $u: string, $r: string) := ?%s(O, $t, $u, $r)", r, r)
	m.rule("view users_%s($o: string, $t: string, $r: string) := ?%s($o, $t, U, $r)", r, r)
}

// node adds clauses of head, for a node in the definition of a relation.
func (m *fgaModel) node(head, of, relation string, n *fgaNode) {
	switch {
	case n.direct != nil:
		for _, subject := range n.direct {
			m.direct(head, of, relation, subject)
		}
	case n.from != "":
		for _, parent := range m.parents(of, n.from) {
			if m.has(parent, n.computed) {
				m.rule(`%s(O, T, U, R) <- tuple("%s", O, "%s", "%s", P, ""), P != "*", %s(P, T, U, R)`,
					head, of, n.from, parent, m.other(parent, n.computed))
			}
		}
	case n.computed != "":
		m.rule("%s(O, T, U, R) <- %s(O, T, U, R)", head, m.same(of, n.computed))
	case n.operator == "or":
		for _, operand := range n.operands {
			m.node(head, of, relation, operand)
		}
	default:
		var atoms []string
		for i, operand := range n.operands {
			m.made++
			part := fmt.Sprintf("part%d", m.made)
			// A relation needs a clause, also where nothing is in it.
			m.rule(`%s(O, T, U, R) <- tuple("", O, "", T, U, R)`, part)
			m.node(part, of, relation, operand)
			if part += "(O, T, U, R)"; i > 0 && n.operator == "but not" {
				part = "!" + part
			}
			atoms = append(atoms, part)
		}
		m.rule("%s(O, T, U, R) <- %s", head, strings.Join(atoms, ", "))
	}
}

// parents are the types of what stands in a tupleset.
func (m *fgaModel) parents(of, tupleset string) []string {
	var out []string
	for _, d := range m.defined[of] {
		for _, subject := range d.body.direct {
			if d.relation == tupleset && !strings.ContainsAny(subject, ":#") &&
				!slices.Contains(out, subject) {
				out = append(out, subject)
			}
		}
	}
	return out
}

// direct adds the clauses of one type restriction.
func (m *fgaModel) direct(head, of, relation, subject string) {
	if group, member, isSet := strings.Cut(subject, "#"); isSet {
		tuple := fmt.Sprintf(`tuple("%s", O, "%s", "%s", G, "%s")`, of, relation, group, member)
		m.rule(`%s(O, "%s", G, "%s") <- %s`, head, group, member, tuple)
		if m.has(group, member) {
			m.rule("%s(O, T, U, R) <- %s, %s(G, T, U, R)", head, tuple, m.other(group, member))
		}
		return
	}
	if user, isWildcard := strings.CutSuffix(subject, ":*"); isWildcard {
		m.rule(`%s(O, "%s", U, "") <- tuple("%s", O, "%s", "%s", "*", ""), subject("%s", U, "")`,
			head, user, of, relation, user, user)
		return
	}
	m.rule(`%s(O, "%s", U, "") <- tuple("%s", O, "%s", "%s", U, ""), U != "*"`,
		head, subject, of, relation, subject)
}
