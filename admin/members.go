package admin

import (
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"
)

// members reads a JSON object whose members are known, each at most once, and
// the end of the input. It calls member for each, which consumes the value.
// hint says what to send and may be "".
func (s *scanner) members(known []string, hint string, member func(name string) error) error {
	var seen uint
	err := s.object("a JSON object", func(name string, at int) error {
		i := slices.Index(known, name)
		if i < 0 {
			return &scanError{
				offset: at, message: "unknown member " + strconv.Quote(shortened(name)),
				hint: didYouMean(name, known, hint),
			}
		}
		if seen&(1<<i) != 0 {
			return s.failAt(at, "member %q appears twice", name)
		}
		seen |= 1 << i
		return member(name)
	})
	if err != nil {
		return err
	}
	return s.end()
}

// stringMember reads the value of member name, which must be a string.
func (s *scanner) stringMember(name string, into *string) error {
	if s.peek() != '"' {
		return s.failAt(s.pos, "%q must be a string, found %s", name, s.shown())
	}
	var err error
	*into, err = s.str()
	return err
}

// uintMember reads the value of member name, which must be an integer from 0 to
// most, as a number or a decimal string.
func (s *scanner) uintMember(name string, most uint64, into *uint64) error {
	c, at := s.peek(), s.pos
	var text string
	var err error
	switch {
	case c == '"':
		text, err = s.str()
	case c == '-' || isDigit(c):
		text, _, err = s.number()
	default:
		return s.failAt(at, "%q must be an integer, found %s", name, s.shown())
	}
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		return s.failAt(at, "%q must be an integer from 0 to %d, found %s", name, most,
			shortened(text))
	}
	*into = n
	return nil
}

// readMembers reads a body that can only be a JSON object of known members.
func (a *API) readMembers(w http.ResponseWriter, r *http.Request, known []string,
	member func(s *scanner, name string) error,
) error {
	src, err := readBody(w, r, a.limits.BodyBytes, limitBody)
	if err != nil {
		return err
	}
	return decodeMembers(src, known, "", member)
}

// decodeMembers is members for a whole body; its errors are Problems.
func decodeMembers(src string, known []string, hint string,
	member func(s *scanner, name string) error,
) error {
	if err := checkUTF8(src); err != nil {
		return err
	}
	s := scanner{src: src}
	return jsonProblem(src,
		s.members(known, hint, func(name string) error { return member(&s, name) }))
}

// checkUTF8 returns the Problem of a body that is not UTF-8.
func checkUTF8(src string) error {
	if utf8.ValidString(src) {
		return nil
	}
	return jsonProblem(src, &scanError{offset: firstInvalid(src), message: "the body is not UTF-8"})
}

// jsonProblem turns a scanError into the answer; any other error passes.
func jsonProblem(src string, err error) error {
	e, ok := err.(*scanError)
	if !ok {
		return err
	}
	line, column := lineColumn(src, e.offset)
	p := newProblem(400, "json_invalid", "line %d, column %d of the body: %s", line, column,
		e.message)
	p.Hint = e.hint
	return p.withErrors([]Detail{{Message: e.message, Line: line, Column: column, Hint: e.hint}}, 1)
}
