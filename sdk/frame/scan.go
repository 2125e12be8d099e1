package frame

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// ErrFrame is wrapped by every error of ParseFrame, ParseMeta and ParseProgress.
var ErrFrame = errors.New("invalid frame")

// scanner walks JSON text whose validity was checked before, so that it only
// has to find its way. It aliases nothing: strings are copied out.
type scanner struct {
	b []byte
	i int
}

// newScanner refuses what is not one JSON value in UTF-8.
func newScanner(b []byte) (*scanner, error) {
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("%w: not UTF-8", ErrFrame)
	}
	if !json.Valid(b) {
		return nil, fmt.Errorf("%w: not JSON", ErrFrame)
	}
	return &scanner{b: b}, nil
}

// peek returns the first byte of the next token. Valid text always has one
// where the functions here look for it.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r', ',', ':':
			s.i++
		default:
			return s.b[s.i]
		}
	}
	return 0
}

// object calls member with each name; member must consume the value.
func (s *scanner) object(what string, member func(name string) error) error {
	if s.peek() != '{' {
		return fmt.Errorf("%w: %s is no object", ErrFrame, what)
	}
	s.i++
	for s.peek() != '}' {
		name, err := s.text(what)
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
	s.i++
	return nil
}

// array calls element for each element; element must consume it.
func (s *scanner) array(what string, element func() error) error {
	if s.peek() != '[' {
		return fmt.Errorf("%w: %s is no array", ErrFrame, what)
	}
	s.i++
	for s.peek() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	s.i++
	return nil
}

// raw consumes one value of any kind and returns its text.
func (s *scanner) raw() []byte {
	s.peek()
	from, depth := s.i, 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			s.skipString()
			if depth == 0 {
				return s.b[from:s.i]
			}
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
			if depth < 0 {
				return s.b[from:s.i]
			}
			if depth == 0 {
				s.i++
				return s.b[from:s.i]
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return s.b[from:s.i]
			}
		}
		s.i++
	}
	return s.b[from:s.i]
}

// skipString moves behind the string that begins here and reports whether it
// holds an escape.
func (s *scanner) skipString() (escaped bool) {
	for s.i++; s.b[s.i] != '"'; s.i++ {
		if s.b[s.i] == '\\' {
			escaped = true
			s.i++
		}
	}
	s.i++
	return escaped
}

func (s *scanner) text(what string) (string, error) {
	if s.peek() != '"' {
		return "", fmt.Errorf("%w: %s is no string", ErrFrame, what)
	}
	from := s.i
	if !s.skipString() {
		return string(s.b[from+1 : s.i-1]), nil
	}
	var out string
	if err := json.Unmarshal(s.b[from:s.i], &out); err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrFrame, what, err)
	}
	return out, nil
}

// number consumes a revision or another counter: an integer from 0 to 2^53-1.
func (s *scanner) number(what string) (uint64, error) {
	raw := s.raw()
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n > maxExact {
		return 0, fmt.Errorf("%w: %s %.32q is no integer from 0 to 2^53-1", ErrFrame, what, raw)
	}
	return n, nil
}

func (s *scanner) flag(what string) (bool, error) {
	switch raw := s.raw(); string(raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, fmt.Errorf("%w: %s is no bool", ErrFrame, what)
	}
}

// untyped is the column of a cell of which nothing is known.
var untyped = Column{Type: Untyped, Nullable: true}

// cell consumes one cell of a column.
func (s *scanner) cell(column Column) (any, error) {
	t := column.Type
	switch c := s.peek(); {
	case c == '"':
		text, err := s.text("cell")
		if err != nil {
			return nil, err
		}
		if v, ok := textCell(text, t); ok {
			return v, nil
		}
	case c == 't' || c == 'f':
		v, err := s.flag("cell")
		if err != nil || t == Bool || t == Untyped {
			return v, err
		}
	case c == '-' || c >= '0' && c <= '9':
		return numberCell(string(s.raw()), t)
	case c == 'n':
		s.raw()
		if column.Nullable || t == Untyped {
			return nil, nil
		}
	default:
		return nil, fmt.Errorf("%w: a cell is no number, string, bool or null", ErrFrame)
	}
	return nil, fmt.Errorf("%w: a cell is not of its column's type %v", ErrFrame, t)
}

// textCell returns the cell of a type that stands as a string.
func textCell(text string, t Type) (any, bool) {
	switch t {
	case String, Untyped:
		return text, true
	case BytesType:
		return ParseBase64(text)
	case Int, TimestampType:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= maxExact && n >= -maxExact || strconv.FormatInt(n, 10) != text {
			return nil, false
		}
		return intCell(n, t), true
	}
	return nil, false
}

func intCell(n int64, t Type) any {
	if t == TimestampType {
		return Timestamp(n)
	}
	return n
}

func numberCell(raw string, t Type) (any, error) {
	if t == Int || t == TimestampType || t == Untyped {
		n, err := strconv.ParseInt(raw, 10, 64)
		if err == nil && n <= maxExact && n >= -maxExact {
			return intCell(n, t), nil
		}
	}
	if t == Float || t == Untyped {
		if f, err := strconv.ParseFloat(raw, 64); err == nil {
			return f + 0, nil // a -0 from elsewhere becomes 0
		}
	}
	return nil, fmt.Errorf("%w: %.32q is no cell of type %v", ErrFrame, raw, t)
}
