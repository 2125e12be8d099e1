package host_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-live/heddle/host"
)

// TestGettingStarted does what docs/getting-started.md has its reader do.
func TestGettingStarted(t *testing.T) { doAsTold(t, "docs/getting-started.md", 10) }

// TestTestingPage does what docs/rules/testing.md has its reader do.
func TestTestingPage(t *testing.T) { doAsTold(t, "docs/rules/testing.md", 2) }

// doAsTold does what a page has its reader do, and compares what the commands, so
// many at least, print with what the page shows. The words behind a block's language
// say what it is:
//
//	file=NAME   the reader types it into a file
//	console     commands behind "$ ", each followed by what it prints
//	background  a command that goes on; in a text block, what it has printed since
func doAsTold(t *testing.T, page string, least int) {
	_, blocks := readPage(t, page)
	s := startServer(t)
	t.Setenv("HEDDLE_SERVER", "http://"+s.running.AdminAddr())
	t.Setenv("HEDDLE_CONNECT", "moq://"+s.running.DataAddr())
	t.Setenv("HEDDLE_KEY", testKey)
	t.Chdir(t.TempDir())
	terminal := &screen{news: make(chan struct{}, 1)}
	commands := 0
	for _, b := range blocks {
		name, isFile := strings.CutPrefix(b.info, "file=")
		switch {
		case isFile:
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		case b.info == "background" && b.language == "console":
			c := consoleCommands(b.text)[0]
			defer terminal.start(t, c.args)()
			terminal.await(t, b, c.output)
		case b.info == "background":
			terminal.await(t, b, b.text)
		case b.language == "console":
			for _, c := range consoleCommands(b.text) {
				commands++
				var out bytes.Buffer
				err := run(t.Context(), &out, host.Arguments(c.args)...)
				host.Report(&out, err)
				if out.String() != c.output {
					t.Fatalf("line %d: heddle %s prints\n%s\nand the page shows\n%s",
						b.line, strings.Join(c.args, " "), out.String(), c.output)
				}
			}
		}
	}
	if commands < least {
		t.Errorf("only %d commands were run", commands)
	}
}

// screen is a terminal in which a command goes on.
type screen struct {
	mu    sync.Mutex
	text  string
	shown string        // what the page has shown of it
	news  chan struct{} // has room for one: there is more text
}

// Write adds to the text.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.text += string(p)
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
	return len(p), nil
}

// start runs a command until the returned function is called.
func (s *screen) start(t *testing.T, args []string) func() {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, s, host.Arguments(args)...) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("heddle %s: %v", strings.Join(args, " "), err)
		}
	}
}

// await waits until the command has printed what the page shows next.
func (s *screen) await(t *testing.T, b block, next string) {
	t.Helper()
	s.shown += next
	patience := time.NewTimer(processPatience)
	defer patience.Stop()
	for {
		s.mu.Lock()
		text := s.text
		s.mu.Unlock()
		if text == s.shown {
			return
		}
		late := false
		if strings.HasPrefix(s.shown, text) {
			select {
			case <-s.news:
				continue
			case <-patience.C:
				late = true
			}
		}
		t.Fatalf("line %d: late: %v: the command has printed\n%s\nand the page shows\n%s",
			b.line, late, text, s.shown)
	}
}

// consoleCommand is one command of a console block with what it prints.
type consoleCommand struct {
	args   []string // behind heddle
	output string
}

func consoleCommands(text string) []consoleCommand {
	var commands []consoleCommand
	for text != "" {
		var words []string
		words, text = shellLine(strings.TrimPrefix(text, "$ "))
		output := text
		if i := strings.Index("\n"+text, "\n$ "); i >= 0 {
			output, text = text[:i], text[i:]
		} else {
			text = ""
		}
		commands = append(commands, consoleCommand{args: words[1:], output: output})
	}
	return commands
}

// commandStart is what a line with a command of ours has.
var commandStart = regexp.MustCompile(`(^|[ |;&(])(\./)?heddle( |$)|(^| )go run \.( |$)`)

// heddleCommands returns the arguments of each command of ours in a text for a
// shell.
func heddleCommands(text string) [][]string {
	var commands [][]string
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		if !commandStart.MatchString(line) {
			text = rest
			continue
		}
		var words []string
		words, text = shellLine(strings.TrimPrefix(text, "$ "))
		for _, simple := range simpleCommands(words) {
			switch {
			case filepath.Base(simple[0]) == "heddle":
				commands = append(commands, simple[1:])
			case len(simple) > 2 && slices.Equal(simple[:3], []string{"go", "run", "."}):
				commands = append(commands, simple[3:])
			}
		}
	}
	return commands
}

var assignment = regexp.MustCompile(`^[A-Za-z_]+=`)

// simpleCommands parts the words of a line at its operators, and takes
// redirections and assignments out.
func simpleCommands(words []string) [][]string {
	var commands [][]string
	var now []string
	end := func() {
		if len(now) > 0 {
			commands = append(commands, now)
		}
		now = nil
	}
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == ">" || w == "<":
			i++ // and the file
		case strings.Trim(w, "|;&()") == "" && w != "":
			end()
		case len(now) == 0 && (assignment.MatchString(w) || w == "do"):
		default:
			now = append(now, w)
		}
	}
	end()
	return commands
}

// shellLine splits the first command line of text into words, as a shell does
// whose variables are not replaced; operators are words of their own. It goes on
// to further lines while a quote is open or a line ends in a backslash.
func shellLine(text string) (words []string, rest string) {
	var word strings.Builder
	inWord := false
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			end()
			return words, text[i+1:]
		case c == ' ' || c == '\t':
			end()
		case c == '#' && !inWord:
			if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
				return words, text[i+n+1:]
			}
			return words, ""
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] != '\n' {
				word.WriteByte(text[i])
				inWord = true
			}
		case c == '\'' || c == '"':
			n := strings.IndexByte(text[i+1:], c)
			if n < 0 {
				n = len(text) - i - 1
			}
			word.WriteString(text[i+1 : min(i+1+n, len(text))])
			inWord = true
			i += n + 1
		case c == '$' && strings.HasPrefix(text[i:], "$("):
			n := strings.IndexByte(text[i:], ')')
			if n < 0 {
				n = len(text) - i - 1
			}
			word.WriteString(text[i : i+n+1])
			inWord = true
			i += n
		case strings.IndexByte("|;&()<>", c) >= 0:
			end()
			words = append(words, string(c))
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	end()
	return words, ""
}

func TestShellLine(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       [][]string
	}{
		{
			"plain", "./heddle serve --data-dir x\nmore",
			[][]string{{"serve", "--data-dir", "x"}},
		},
		{
			"quotes over lines", "heddle write g '+a(\"b\")\n+c(1)' --json\n",
			[][]string{{"write", "g", "+a(\"b\")\n+c(1)", "--json"}},
		},
		{
			"assignment", "HEDDLE_KEY=x heddle query g '?a(X)'\n",
			[][]string{{"query", "g", "?a(X)"}},
		},
		{
			"pipe and redirection", "cat x | heddle load g r - > out; heddle version\n",
			[][]string{{"load", "g", "r", "-"}, {"version"}},
		},
		{
			"continued", "heddle load g \\\n    r f.csv\n",
			[][]string{{"load", "g", "r", "f.csv"}},
		},
		{
			"substitution", "export K=$(cat heddle/key)\nheddle query g '?a(X)' --key $(cat k)\n",
			[][]string{{"query", "g", "?a(X)", "--key", "$(cat k)"}},
		},
		{"go run", "go run . demo\n", [][]string{{"demo"}}},
		{"no command", "heddle: an error\ncd heddle\nshop.heddle\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := heddleCommands(c.text)
			if !slices.EqualFunc(got, c.want, slices.Equal[[]string]) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
