package admin

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON (RFC 8259) from a string that it never changes, one value
// at a time and without reflection. Strings without escapes are slices of src.
// The caller has checked that src is UTF-8.
type scanner struct {
	src string
	pos int // byte offset of what is read next
}

// nestingMax is how deep a value that nobody asked for may nest before skip gives up.
const nestingMax = 64

// scanError is malformed JSON, or JSON of another shape than the route expects.
type scanError struct {
	offset  int // in bytes
	message string
	hint    string
}

func (e *scanError) Error() string { return e.message }

func (s *scanner) failAt(offset int, format string, args ...any) error {
	return &scanError{offset: offset, message: fmt.Sprintf(format, args...)}
}

// peek skips white space and returns the next byte, 0 at the end of the input.
func (s *scanner) peek() byte {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// shown names the next value or byte for an error message.
func (s *scanner) shown() string {
	switch c := s.peek(); {
	case c == 0 && s.pos >= len(s.src):
		return "the end of the body"
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '"':
		return "a string"
	case c == '-' || isDigit(c):
		return "a number"
	}
	r, _ := utf8.DecodeRuneInString(s.src[s.pos:])
	word := s.src[s.pos:]
	if n := strings.IndexFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }); n >= 0 {
		word = word[:n]
	}
	if word != "" && len(word) <= 16 {
		return word
	}
	return fmt.Sprintf("%q", r)
}

// expect consumes c, which belongs where what says.
func (s *scanner) expect(c byte, what string) error {
	if s.peek() != c || s.pos >= len(s.src) {
		return s.failAt(s.pos, "expected %s, found %s", what, s.shown())
	}
	s.pos++
	return nil
}

// end checks that nothing but white space is left.
func (s *scanner) end() error {
	if s.peek(); s.pos < len(s.src) {
		return s.failAt(s.pos, "expected the end of the body, found %s", s.shown())
	}
	return nil
}

// object calls member for each member of the object that comes next, with its
// name and offset; member consumes the value.
func (s *scanner) object(what string, member func(name string, at int) error) error {
	if err := s.expect('{', what); err != nil {
		return err
	}
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.failAt(s.pos, "expected a member name in double quotes, found %s", s.shown())
		}
		at := s.pos
		name, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':', "':' after the member name"); err != nil {
			return err
		}
		if err := member(name, at); err != nil {
			return err
		}
		if s.peek() == '}' {
			s.pos++
			return nil
		}
		if err := s.expect(',', "',' or '}'"); err != nil {
			return err
		}
	}
}

// array calls element for each element of the array that comes next, with its
// index and offset; element consumes the value.
func (s *scanner) array(what string, element func(index, at int) error) error {
	if err := s.expect('[', what); err != nil {
		return err
	}
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for i := 0; ; i++ {
		s.peek()
		if err := element(i, s.pos); err != nil {
			return err
		}
		if s.peek() == ']' {
			s.pos++
			return nil
		}
		if err := s.expect(',', "',' or ']'"); err != nil {
			return err
		}
		if s.peek() == ']' {
			return s.failAt(s.pos, "a comma must not stand before ']'")
		}
	}
}

// str reads the string that comes next; the caller has seen its opening quote.
func (s *scanner) str() (string, error) {
	start := s.pos
	s.pos++
	for i := s.pos; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '"':
			text := s.src[s.pos:i]
			s.pos = i + 1
			return text, nil
		case c == '\\':
			return s.escaped(start, i)
		case c < ' ':
			return "", s.failAt(i, "a control character in a string; write \\u%04x", c)
		}
	}
	return "", s.failAt(start, "the string that begins here does not end")
}

// escaped reads the rest of a string that began at start and whose first
// backslash is at i.
func (s *scanner) escaped(start, i int) (string, error) {
	var b strings.Builder
	b.WriteString(s.src[s.pos:i])
	for i < len(s.src) {
		switch c := s.src[i]; {
		case c == '"':
			s.pos = i + 1
			return b.String(), nil
		case c < ' ':
			return "", s.failAt(i, "a control character in a string; write \\u%04x", c)
		case c != '\\':
			b.WriteByte(c)
			i++
		default:
			r, size, ok := unescape(s.src[i:])
			if !ok {
				return "", s.failAt(i,
					`not an escape of JSON; they are \" \\ \/ \b \f \n \r \t \uXXXX`+
						` (two for characters beyond U+FFFF)`)
			}
			b.WriteRune(r)
			i += size
		}
	}
	return "", s.failAt(start, "the string that begins here does not end")
}

// unescape returns the character of the escape at the start of b, and its size
// in bytes. Half a surrogate pair is no character.
func unescape(b string) (rune, int, bool) {
	if len(b) < 2 {
		return 0, 0, false
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := strings.IndexByte(from, b[1]); i >= 0 {
		return rune(to[i]), 2, true
	}
	first, ok := hexEscape(b)
	if !ok {
		return 0, 0, false
	}
	if !utf16.IsSurrogate(first) {
		return first, 6, true
	}
	second, ok := hexEscape(b[6:])
	if !ok {
		return 0, 0, false
	}
	r := utf16.DecodeRune(first, second)
	return r, 12, r != utf8.RuneError
}

// hexEscape reads \uXXXX at the start of b.
func hexEscape(b string) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(b[2:6]) {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// number reads the number that comes next and reports whether it is written as
// an integer: without fraction and exponent.
func (s *scanner) number() (text string, integer bool, err error) {
	start, i := s.pos, s.pos
	if i < len(s.src) && s.src[i] == '-' {
		i++
	}
	digits := countDigits(s.src[i:])
	if digits == 0 || digits > 1 && s.src[i] == '0' {
		err = s.failAt(start, "not a number of JSON (no leading zeros, a digit after the sign)")
		return "", false, err
	}
	i += digits
	integer = true
	if i < len(s.src) && s.src[i] == '.' {
		integer = false
		if digits = countDigits(s.src[i+1:]); digits == 0 {
			err = s.failAt(start, "not a number of JSON: a digit must follow the point")
			return "", false, err
		}
		i += 1 + digits
	}
	if i < len(s.src) && (s.src[i] == 'e' || s.src[i] == 'E') {
		integer = false
		i++
		if i < len(s.src) && (s.src[i] == '+' || s.src[i] == '-') {
			i++
		}
		if digits = countDigits(s.src[i:]); digits == 0 {
			err = s.failAt(start, "not a number of JSON: a digit must follow the exponent")
			return "", false, err
		}
		i += digits
	}
	s.pos = i
	return s.src[start:i], integer, nil
}

func countDigits(b string) int {
	n := 0
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// word reads true, false or null.
func (s *scanner) word() (string, error) {
	for _, w := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(s.src[s.pos:], w) {
			s.pos += len(w)
			return w, nil
		}
	}
	return "", s.failAt(s.pos, "expected a value, found %s", s.shown())
}

// skip reads over the value that comes next, whatever it is, nested at most
// depth deep.
func (s *scanner) skip(depth int) error {
	if depth == 0 {
		return s.failAt(s.pos, "nested deeper than %d", nestingMax)
	}
	var err error
	switch c := s.peek(); {
	case c == '{':
		return s.object("an object", func(string, int) error { return s.skip(depth - 1) })
	case c == '[':
		return s.array("an array", func(int, int) error { return s.skip(depth - 1) })
	case c == '"':
		_, err = s.str()
	case c == '-' || isDigit(c):
		_, _, err = s.number()
	default:
		_, err = s.word()
	}
	return err
}

// lineColumn returns the place of a byte offset of src, in characters; both count from 1.
func lineColumn(src string, offset int) (line, column int) {
	before := src[:min(offset, len(src))]
	line = strings.Count(before, "\n") + 1
	return line, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

// firstInvalid returns the offset of the first byte of s that is not UTF-8.
func firstInvalid(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}
