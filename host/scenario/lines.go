package scenario

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heddle-live/heddle/engine/parse"
)

// directive is a line that begins in the first column, with the indented lines
// behind it.
type directive struct {
	word  string // the first of the line
	line  int
	text  string   // the whole first line
	rest  fragment // what follows the word
	block fragment // the indented lines, dedented
}

// fragment is a piece of a file that another parser reads.
type fragment struct {
	text string
	line int   // of its first line in the file, from 1
	cut  []int // characters that were taken off each line
}

// position returns where a place of the fragment's text is in the file.
func (f *fragment) position(p parse.Position) parse.Position {
	i := min(max(p.Line-1, 0), len(f.cut)-1)
	return parse.Position{Line: f.line + i, Column: max(p.Column+f.cut[i], 1)}
}

func (f *fragment) start() parse.Position {
	return f.position(parse.Position{Line: 1, Column: 1})
}

// empty reports whether there is nothing but blanks and comments.
func (f *fragment) empty() bool {
	for line := range strings.SplitSeq(f.text, "\n") {
		if !isBlank(line) {
			return false
		}
	}
	return true
}

// isBlank reports whether a line says nothing.
func isBlank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "%")
}

// slice returns the part of a fragment's line from byte on, behind a prefix that
// the other parser wants.
func (f *fragment) slice(from int, prefix string) fragment {
	return fragment{
		text: prefix + f.text[from:], line: f.line,
		cut: []int{f.cut[0] + utf8.RuneCountInString(f.text[:from]) -
			utf8.RuneCountInString(prefix)},
	}
}

// continued returns the fragment of one line with a block as further lines of it.
func (f *fragment) continued(block *fragment) fragment {
	joined := fragment{text: f.text, line: f.line, cut: slices.Clone(f.cut)}
	for i, line := range strings.Split(block.text, "\n") {
		joined.text += "\n " + line // what begins with a blank goes on
		joined.cut = append(joined.cut, block.cut[i]-1)
	}
	return joined
}

// groups parts the fragment at the lines that begin in its first column, and
// leaves blank lines and comments between them out.
func (f *fragment) groups() []fragment {
	var groups []fragment
	for i, line := range strings.Split(f.text, "\n") {
		indented := line != strings.TrimLeft(line, " \t")
		switch {
		case isBlank(line):
		case indented && len(groups) > 0 && groups[len(groups)-1].end() == f.line+i:
			last := &groups[len(groups)-1]
			last.text += "\n" + line
			last.cut = append(last.cut, f.cut[i])
		default:
			text := strings.TrimLeft(line, " \t")
			cut := []int{f.cut[i] + len(line) - len(text)}
			groups = append(groups, fragment{text: text, line: f.line + i, cut: cut})
		}
	}
	return groups
}

// end is the number of the line behind the fragment.
func (f *fragment) end() int { return f.line + len(f.cut) }

// splitDirectives parts a file. Indented lines in front of the first directive are an
// error, which it returns.
func splitDirectives(src string) ([]directive, *parse.Error) {
	var directives []directive
	lines := strings.Split(src, "\n")
	for i := 0; i < len(lines); {
		line := strings.TrimSuffix(lines[i], "\r")
		if isBlank(line) {
			i++
			continue
		}
		if trimmed := strings.TrimLeft(line, " \t"); trimmed != line {
			at := parse.Position{Line: i + 1, Column: len(line) - len(trimmed) + 1}
			return nil, parse.NewError(src, at, "a scenario begins like: test a parcel moves",
				"an indented line belongs to the line above it, and there is none")
		}
		word := line
		if end := strings.IndexAny(line, " \t"); end >= 0 {
			word = line[:end]
		}
		rest := strings.TrimLeft(line[len(word):], " \t")
		d := directive{
			word: word, line: i + 1, text: strings.TrimRight(line, " \t"),
			rest: fragment{
				text: strings.TrimRight(rest, " \t"), line: i + 1, cut: []int{
					utf8.RuneCountInString(line) - utf8.RuneCountInString(rest),
				},
			},
		}
		from := i + 1
		for i = from; i < len(lines); i++ {
			if line := lines[i]; line != "" && !strings.ContainsRune(" \t\r", rune(line[0])) {
				break
			}
		}
		d.block = dedent(lines[from:i], from+1)
		directives = append(directives, d)
	}
	return directives, nil
}

// dedent takes off what all lines that say something begin with.
func dedent(lines []string, first int) fragment {
	margin, some := "", false
	for _, line := range lines {
		blanks := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		switch {
		case isBlank(line):
		case !some:
			margin, some = blanks, true
		default:
			for !strings.HasPrefix(blanks, margin) {
				margin = margin[:len(margin)-1]
			}
		}
	}
	f := fragment{line: first, cut: make([]int, max(len(lines), 1))}
	texts := make([]string, len(lines))
	for i, line := range lines {
		text := strings.TrimPrefix(line, margin)
		if isBlank(line) {
			text = strings.TrimLeft(line, " \t")
		}
		f.cut[i] = len(line) - len(text) // blanks have a byte each
		texts[i] = strings.TrimSuffix(text, "\r")
	}
	f.text = strings.Join(texts, "\n")
	return f
}
