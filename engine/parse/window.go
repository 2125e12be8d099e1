package parse

import "strconv"

const hintWindow = "for instance: ?r(X, Y), Y > 1 order by Y desc limit 10 offset 20"

// orderedTerm takes `:desc` behind an argument of a query's goal.
func (p *parser) orderedTerm(where place, colon token, t Term) {
	switch {
	case where != inGoal:
		p.fail(colon, "the goal of a query has an order; the rows of a rule have none",
			"an order cannot stand here")
	case t.Kind != Variable:
		p.fail(colon, "order by a variable", "%s is the same in all rows", t)
	default:
		p.next()
		p.order = append(p.order, Order{Term: t, Descending: p.is(p.next(), "desc")})
	}
}

// orderAndLimit parses `order by X desc, Y limit 50 offset 10` behind a query.
func (p *parser) orderAndLimit(q *QueryTree) {
	q.Order = p.order
	p.order = nil
	if tok := p.peek(); p.is(tok, "order") && p.is(p.peekAt(1), "by") {
		if len(q.Order) > 0 {
			p.fail(tok, "write the order once", "the goal has an order already")
		}
		p.next()
		p.next()
		p.orderTerms(q)
	}
	if tok := p.peek(); p.is(tok, "limit") {
		q.Window.Pos = position(tok)
		p.next()
		q.Window.Limit = p.count("limit", 1)
		if p.is(p.peek(), "offset") {
			p.next()
			q.Window.Offset = p.count("offset", 0)
		}
	}
	if tok := p.peek(); tok.kind != tokenEnd && !p.failed &&
		(tok.kind != tokenComma || !p.partAhead(1)) {
		p.badSeparator(tok)
	}
}

func (p *parser) orderTerms(q *QueryTree) {
	for !p.failed {
		tok := p.peek()
		if tok.kind != tokenVariable {
			p.fail(tok, hintWindow, "expected the variable to order by, found %s", p.describe(tok))
			return
		}
		if len(q.Order) == ColumnsMax {
			p.fail(tok, "", "there are more than the %d columns allowed", ColumnsMax)
		}
		o := Order{Term: p.term(inBody)}
		if p.accept(tokenColon) || p.is(p.peek(), "asc") || p.is(p.peek(), "desc") {
			direction := p.next()
			o.Descending = p.is(direction, "desc")
			if !o.Descending && !p.is(direction, "asc") {
				p.fail(direction, "", "expected asc or desc, found %s", p.describe(direction))
			}
		}
		q.Order = append(q.Order, o)
		if p.peek().kind != tokenComma || p.partAhead(1) {
			return
		}
		p.next()
	}
}

// count takes the number behind limit or offset.
func (p *parser) count(word string, least int) int {
	tok := p.peek()
	if tok.kind != tokenInt {
		p.fail(tok, hintWindow, "expected a number after %s, found %s", word, p.describe(tok))
		return 0
	}
	n, err := strconv.Atoi(p.text(p.next()))
	if err != nil || n < least || n > WindowMax {
		p.fail(tok, "", "%s is a number from %d to %d", word, least, WindowMax)
	}
	return n
}
