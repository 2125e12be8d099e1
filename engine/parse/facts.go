package parse

// transactionStatement parses one statement of a transaction.
func (p *parser) transactionStatement(t *TransactionTree) {
	tok, after := p.peek(), p.peekAt(1)
	switch {
	case tok.kind == tokenPlus || tok.kind == tokenMinus:
		if p.arrowInStatement() {
			if s := p.writes(); !p.failed {
				t.Statements = append(t.Statements, s)
			}
			p.expectEnd()
		} else if p.factStatement(tok) {
			if facts := p.facts(); !p.failed {
				t.Statements = append(t.Statements, Statement{Facts: facts, Pos: facts.Pos})
			}
		}
	case p.is(tok, "seed") && after.kind == tokenPlus:
		p.fail(tok, "leave the word seed out", "seed belongs to programs")
	case tok.kind == tokenQuestion:
		p.fail(tok, "ask it with heddle query",
			"a transaction holds facts only, and this is a query")
	case p.is(tok, "action") && after.kind == tokenName:
		p.fail(tok, "actions are deployed with heddle apply",
			"a transaction holds facts only, and this is an action")
	case p.is(tok, "view") && after.kind == tokenName:
		p.fail(tok, "views are deployed with heddle apply",
			"a transaction holds facts only, and this is a view")
	case tok.kind == tokenName && p.arrowInStatement():
		p.fail(tok, "rules are deployed with heddle apply",
			"a transaction holds facts only, and this is a rule")
	case tok.kind == tokenName && (after.kind == tokenOpen || after.kind == tokenOpenBracket):
		name := p.text(tok)
		p.fail(tok, "write +"+name+"(...) to insert or -"+name+"(...) to delete",
			"a fact begins with `+` or `-`")
	case tok.kind == tokenVariable && after.kind == tokenOpen:
		p.capitalName(tok, "relation")
	default:
		p.fail(tok, "for instance: +edge(1, 2) or -edge(1, 2)", "expected a fact, found %s",
			p.describe(tok))
	}
}

// factStatement fails for signed statements that are no facts, and reports
// whether this is one.
func (p *parser) factStatement(sign token) bool {
	defer func(at int) {
		if !p.failed {
			p.at = at
		}
	}(p.at)
	p.next()
	if p.peek().kind != tokenName {
		return true
	}
	p.next()
	switch tok := p.peek(); {
	case tok.kind == tokenOpen && sign.kind == tokenPlus && p.hasColon():
		p.fail(sign, "schemas are deployed with heddle apply",
			"a transaction holds facts only, and this is a schema")
	case tok.kind == tokenEnd && sign.kind == tokenMinus:
		p.fail(sign, "to drop a relation or rule, leave it out of the program and apply that",
			"a transaction holds facts only")
	}
	return !p.failed
}

// writes parses `-head, +head <- body`, a step of an action or transaction. The body
// may be missing, and rows in brackets may stand in place of a head.
func (p *parser) writes() Statement {
	s := Statement{Pos: position(p.peek())}
	for !p.failed {
		sign := p.next()
		if sign.kind != tokenPlus && sign.kind != tokenMinus {
			p.fail(sign, "for instance: -edge(X, Y) <- edge(X, Y), Y > 5",
				"expected `+` or `-` and what is written, found %s", p.describe(sign))
			break
		}
		p.heads(&s, sign.kind == tokenMinus)
		if len(s.Heads) > HeadsMax {
			p.fail(sign, "", "the statement writes more than the %d rows allowed", HeadsMax)
		}
		if p.peek().kind != tokenComma {
			break
		}
		p.next()
	}
	if tok := p.peek(); tok.kind == tokenTurnstile {
		p.fail(tok, "write <-", "the body is written with `<-`, not `:-`")
	}
	if p.accept(tokenArrow) {
		s.Body = p.body(0)
	}
	if tok := p.peek(); tok.kind != tokenEnd && tok.kind != tokenSemicolon {
		p.badSeparator(tok)
	}
	return s
}

// heads parses one head, or several of a relation in brackets.
func (p *parser) heads(s *Statement, deletes bool) {
	if p.peekAt(1).kind != tokenOpenBracket {
		s.Heads = append(s.Heads, WriteHead{Delete: deletes, Atom: p.atom(inWrite)})
		return
	}
	relation := p.name("relation")
	p.next()
	for !p.failed {
		if tok := p.peek(); tok.kind != tokenOpen {
			p.fail(tok, "for instance: +"+relation.Text+"[(1, 2), (2, 3)]",
				"expected `(` and the values of a fact, found %s", p.describe(tok))
			return
		}
		row := Atom{Relation: relation, Terms: p.arguments(inWrite, relation.Text)}
		s.Heads = append(s.Heads, WriteHead{Delete: deletes, Atom: row})
		if p.failed || p.accept(tokenCloseBracket) {
			return
		}
		p.expect(tokenComma, "`,` or `]` after the fact")
		if p.accept(tokenCloseBracket) {
			return
		}
	}
}

// hasColon reports whether the first argument is `name:`.
func (p *parser) hasColon() bool {
	return p.peekAt(1).kind == tokenName && p.peekAt(2).kind == tokenColon
}

// facts parses a signed fact, or several of one relation in brackets.
func (p *parser) facts() Facts {
	sign := p.next()
	f := Facts{Delete: sign.kind == tokenMinus, Pos: position(sign)}
	f.Relation = p.name("relation")
	switch tok := p.peek(); {
	case p.failed:
	case tok.kind == tokenOpen:
		f.Rows = append(f.Rows, p.tuple(nil, f.Relation.Text))
	case tok.kind == tokenOpenBracket:
		f.Rows = p.tuples(f.Relation.Text)
	default:
		p.fail(tok, "for instance: +"+f.Relation.Text+"(1, 2)",
			"expected `(` or `[` after %s, found %s", f.Relation.Text, p.describe(tok))
	}
	p.expectEnd()
	return f
}

// tuples parses `[(1, 2), (2, 3)]`; a comma may follow the last.
func (p *parser) tuples(relation string) [][]Term {
	var rows [][]Term
	p.next()
	for !p.failed && !p.accept(tokenCloseBracket) {
		tok := p.peek()
		if tok.kind != tokenOpen {
			p.fail(tok, "for instance: +"+relation+"[(1, 2), (2, 3)]",
				"expected `(` and the values of a fact, found %s", p.describe(tok))
			break
		}
		if len(rows) == TuplesMax {
			p.fail(tok, "send the rest in another statement",
				"there are more than the %d facts allowed", TuplesMax)
			break
		}
		var width int
		if len(rows) > 0 {
			width = len(rows[0])
		}
		rows = append(rows, p.tuple(make([]Term, 0, width), relation))
		if p.failed || p.accept(tokenCloseBracket) {
			break
		}
		p.expect(tokenComma, "`,` or `]` after the fact")
	}
	if !p.failed && len(rows) == 0 {
		p.fail(p.tokens[p.at-1], "", "there are no facts in the brackets")
	}
	return rows
}

// tuple parses `(1, "a", true)` and appends the values to row.
func (p *parser) tuple(row []Term, relation string) []Term {
	p.next()
	for !p.failed {
		tok := p.peek()
		if tok.kind == tokenClose && len(row) == 0 {
			p.fail(tok, "", "%s needs at least one value", relation)
			break
		}
		if len(row) == ColumnsMax {
			p.fail(tok, "", "there are more than the %d columns allowed", ColumnsMax)
			break
		}
		row = append(row, p.constant())
		if p.failed || p.accept(tokenClose) {
			break
		}
		p.expect(tokenComma, "`,` or `)`")
	}
	return row
}

func (p *parser) constant() Term {
	tok := p.peek()
	t := p.term(inFact)
	p.afterTerm(inFact, t)
	switch t.Kind {
	case Variable:
		hint := "a string needs quotes: \"" + t.Name + "\""
		if t.Name == "True" || t.Name == "TRUE" || t.Name == "False" || t.Name == "FALSE" {
			hint = "true and false are written in lower case"
		}
		p.fail(tok, hint, "%s is a variable; a fact has values only", t.Name)
	case Parameter:
		p.fail(tok, "", "$%s is a parameter; a fact has values only", t.Name)
	case Wildcard:
		p.fail(tok, "name each fact with all its values",
			"`_` is not a value; a fact has values only")
	}
	return t
}
