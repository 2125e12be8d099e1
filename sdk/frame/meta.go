package frame

import (
	"fmt"
	"strconv"
)

// Column is a column of a view's rows or a parameter of its key.
type Column struct {
	Name string
	Type Type // Untyped if the reader does not know the spelling
	// Nullable columns may hold null. A parameter is never nullable.
	Nullable bool
}

// Meta is the one frame of a track meta: what a reader needs to know of a view.
type Meta struct {
	View       string   // the view's name
	Schema     uint64   // number of the program in force
	Text       string   // the view's declaration, as a program spells it
	Parameters []Column // of the key, in order
	Columns    []Column // of the rows, in order; empty if the view has parts
	Parts      []Part   // named parts; nil if the view has none
}

// Part is a named part of a view.
type Part struct {
	Name    string
	Columns []Column
}

// columns is safe on nil, which stands for "types unknown".
func (m *Meta) columns() []Column {
	if m == nil {
		return nil
	}
	return m.Columns
}

func (m *Meta) part(name string) []Column {
	if m != nil {
		for _, p := range m.Parts {
			if p.Name == name {
				return p.Columns
			}
		}
	}
	return nil
}

// AppendMeta appends the frame of m. Parts are left out when there are none.
func AppendMeta(dst []byte, m *Meta) []byte {
	dst = appendQuoted(append(dst, `{"view":`...), m.View)
	dst = strconv.AppendUint(append(dst, `,"schema":`...), m.Schema, 10)
	dst = appendQuoted(append(dst, `,"text":`...), m.Text)
	dst = appendColumns(append(dst, `,"parameters":`...), m.Parameters)
	dst = appendColumns(append(dst, `,"columns":`...), m.Columns)
	if len(m.Parts) > 0 {
		dst = append(dst, `,"parts":{`...)
		for _, p := range m.Parts {
			dst = appendQuoted(appendComma(dst), p.Name)
			dst = appendColumns(append(dst, ':'), p.Columns)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendColumns(dst []byte, columns []Column) []byte {
	dst = append(dst, '[')
	for _, c := range columns {
		dst = appendQuoted(append(appendComma(dst), `{"name":`...), c.Name)
		dst = appendQuoted(append(dst, `,"type":`...), c.Type.String())
		if c.Nullable {
			dst = append(dst, `,"nullable":true`...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// ParseMeta reads the frame of a track meta. Unknown members are skipped and
// unknown types become Untyped. Errors wrap ErrFrame.
func ParseMeta(payload []byte) (*Meta, error) {
	s, err := newScanner(payload)
	if err != nil {
		return nil, err
	}
	m := &Meta{}
	err = s.object("meta", func(name string) (err error) {
		switch name {
		case "view":
			m.View, err = s.text(name)
		case "schema":
			m.Schema, err = s.number(name)
		case "text":
			m.Text, err = s.text(name)
		case "parameters":
			m.Parameters, err = s.columns(name)
		case "columns":
			m.Columns, err = s.columns(name)
		case "parts":
			m.Parts = nil
			err = s.object(name, func(part string) error {
				columns, err := s.columns(name)
				m.Parts = append(m.Parts, Part{Name: part, Columns: columns})
				return err
			})
		default:
			s.raw()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if m.View == "" {
		return nil, fmt.Errorf("%w: meta without a view", ErrFrame)
	}
	return m, nil
}

func (s *scanner) columns(what string) ([]Column, error) {
	columns := []Column{}
	err := s.array(what, func() error {
		var c Column
		err := s.object(what, func(name string) (err error) {
			switch name {
			case "name":
				c.Name, err = s.text(name)
			case "type":
				var spelling string
				spelling, err = s.text(name)
				c.Type, _ = TypeOf(spelling)
			case "nullable":
				c.Nullable, err = s.flag(name)
			default:
				s.raw()
			}
			return err
		})
		columns = append(columns, c)
		return err
	})
	return columns, err
}

// Progress is one frame of a track progress.
type Progress struct {
	Epoch     string
	Durable   uint64 // newest revision in the journal
	Published uint64 // newest revision whose changes were handed to all tracks
}

// AppendProgress appends the frame of p.
func AppendProgress(dst []byte, p Progress) []byte {
	dst = append(append(dst, `{"epoch":"`...), p.Epoch...)
	dst = strconv.AppendUint(append(dst, `","durable":`...), p.Durable, 10)
	dst = strconv.AppendUint(append(dst, `,"published":`...), p.Published, 10)
	return append(dst, '}')
}

// ParseProgress reads a frame of a track progress. Unknown members are skipped.
// Errors wrap ErrFrame.
func ParseProgress(payload []byte) (Progress, error) {
	var p Progress
	s, err := newScanner(payload)
	if err != nil {
		return p, err
	}
	err = s.object("progress", func(name string) (err error) {
		switch name {
		case "epoch":
			p.Epoch, err = s.text(name)
		case "durable":
			p.Durable, err = s.number(name)
		case "published":
			p.Published, err = s.number(name)
		default:
			s.raw()
		}
		return err
	})
	return p, err
}
