//go:build browser

package host_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// browserPatience is how long a page may take to do what it is waited for.
const browserPatience = 30 * time.Second

// chromium is one headless browser, driven over a pair of pipes with the
// DevTools protocol: JSON messages, a zero byte after each.
type chromium struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr bytes.Buffer // to be read once ended is closed
	to     *os.File
	ended  chan struct{}

	mu      sync.Mutex
	nextID  int
	waiting map[int]chan devtools
	pages   map[string]*page // by DevTools session
}

// devtools is a message of the protocol: a call, its answer, or an event.
type devtools struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *devtoolsError  `json:"error,omitempty"`
}

type devtoolsError struct {
	Message string `json:"message"`
}

func (e *devtoolsError) Error() string { return "Chromium: " + e.Message }

var errChromiumGone = errors.New("the browser has ended")

// startChromium starts a browser with a profile of its own and ends it with the
// test.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	// Not t.TempDir: Chromium's helpers may outlive it for a moment and write there.
	profile, err := os.MkdirTemp("", "heddle-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	fromTest, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, toTest, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &chromium{
		t: t, to: to, ended: make(chan struct{}),
		waiting: map[int]chan devtools{}, pages: map[string]*page{},
	}
	b.cmd = exec.Command(chromiumPath(t),
		"--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	b.cmd.Stderr = &b.stderr
	b.cmd.ExtraFiles = []*os.File{fromTest, toTest} // descriptors 3 and 4
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	b.cmd.WaitDelay = time.Second // helpers hold standard error a little longer
	err = errors.Join(b.cmd.Start(), fromTest.Close(), toTest.Close())
	if err != nil {
		t.Fatal(err)
	}
	go b.read(from)
	t.Cleanup(func() { b.stop(profile) })
	return b
}

func chromiumPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium on this machine: make install")
	return ""
}

// stop asks the browser to end, waits, and removes its profile.
func (b *chromium) stop(profile string) {
	_, err := b.call("", "Browser.close", nil)
	if err != nil && !errors.Is(err, errChromiumGone) {
		b.t.Errorf("close Chromium: %v", err)
	}
	select {
	case <-b.ended:
	case <-time.After(browserPatience):
		b.t.Error("Chromium did not end")
		b.kill()
		<-b.ended
	}
	_ = b.to.Close()
	err = retry(browserPatience, func() error { return os.RemoveAll(profile) })
	if err != nil {
		b.t.Errorf("remove Chromium's profile: %v", err)
	}
}

// kill ends the browser with its helpers, which are its process group.
func (b *chromium) kill() { _ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL) }

// retry repeats try until it succeeds or the time is over, and returns its last
// error.
func retry(patience time.Duration, try func() error) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(patience); ; <-look.C {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// read hands out what the browser says until it ends.
func (b *chromium) read(from *os.File) {
	lines := bufio.NewReaderSize(from, 1<<16)
	for {
		text, err := lines.ReadBytes(0)
		if err != nil {
			break
		}
		var m devtools
		if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
			b.t.Errorf("Chromium's message %.200q: %v", text, err)
			continue
		}
		b.mu.Lock()
		answer, p := b.waiting[m.ID], b.pages[m.Session]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case answer != nil:
			answer <- m // has room for one
		case p != nil:
			p.event(m)
		}
	}
	_ = from.Close()
	b.kill()         // while it is not waited for, its process group is no other's
	_ = b.cmd.Wait() // killed or not, it is gone
	close(b.ended)
}

// call makes one call of the protocol, to the browser itself if session is "".
func (b *chromium) call(session, method string, params any) (json.RawMessage, error) {
	m := devtools{Session: session, Method: method}
	var err error
	if params != nil {
		if m.Params, err = json.Marshal(params); err != nil {
			return nil, err
		}
	}
	answer := make(chan devtools, 1)
	b.mu.Lock()
	b.nextID++
	m.ID = b.nextID
	b.waiting[m.ID] = answer
	b.mu.Unlock()
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	// One Write for each message: a file does not mix those of several goroutines.
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return nil, errors.Join(errChromiumGone, err)
	}
	select {
	case m = <-answer:
	case <-b.ended:
		return nil, fmt.Errorf("%w: %.2000s", errChromiumGone, b.stderr.String())
	case <-time.After(2 * browserPatience):
		return nil, fmt.Errorf("%s: no answer within %v", method, 2*browserPatience)
	}
	if m.Error != nil {
		return nil, fmt.Errorf("%s: %w", method, m.Error)
	}
	return m.Result, nil
}

// page is one tab.
type page struct {
	t       *testing.T
	browser *chromium
	target  string
	session string

	mu       sync.Mutex
	problems []string // errors of its console, its scripts and its network
}

// open opens a tab at an address, for the time of t.
func (b *chromium) open(t *testing.T, url string) *page {
	t.Helper()
	p := &page{t: t, browser: b}
	var target struct{ TargetID string }
	// A window for each: a tab behind another is hidden and draws nothing.
	p.must(&target, "", "Target.createTarget",
		map[string]any{"url": "about:blank", "newWindow": true})
	p.target = target.TargetID
	var attached struct{ SessionID string }
	p.must(&attached, "", "Target.attachToTarget",
		map[string]any{"targetId": p.target, "flatten": true})
	p.session = attached.SessionID
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Inspector"} {
		p.must(nil, p.session, domain+".enable", nil)
	}
	t.Cleanup(p.close)
	p.navigate(url)
	return p
}

func (p *page) must(result any, session, method string, params any) {
	p.t.Helper()
	answer, err := p.browser.call(session, method, params)
	if err == nil && result != nil {
		err = json.Unmarshal(answer, result)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// command makes a call to the page's own session.
func (p *page) command(method string, params map[string]any) {
	p.t.Helper()
	p.must(nil, p.session, method, params)
}

func (p *page) navigate(url string) {
	p.t.Helper()
	var answer struct{ ErrorText string }
	p.must(&answer, p.session, "Page.navigate", map[string]any{"url": url})
	if answer.ErrorText != "" {
		p.t.Fatalf("open %s: %s", url, answer.ErrorText)
	}
}

// close closes the tab as a person does: the page hears of it.
func (p *page) close() {
	p.browser.mu.Lock()
	_, open := p.browser.pages[p.session]
	delete(p.browser.pages, p.session)
	p.browser.mu.Unlock()
	if !open {
		return
	}
	_, err := p.browser.call("", "Target.closeTarget", map[string]any{"targetId": p.target})
	if err != nil {
		p.t.Errorf("close the page: %v", err)
	}
}

// event takes down what a person would find red in the console.
func (p *page) event(m devtools) {
	var e struct {
		Type string // of a console call
		Args []struct {
			Value       any
			Description string
		}
		Entry            struct{ Level, Text, URL string }
		ExceptionDetails exceptionDetails
	}
	if err := json.Unmarshal(m.Params, &e); err != nil {
		p.t.Errorf("Chromium's event %s: %v", m.Method, err)
		return
	}
	problem := ""
	switch m.Method {
	case "Runtime.consoleAPICalled":
		if e.Type == "error" || e.Type == "assert" {
			var words []string
			for _, a := range e.Args {
				words = append(words, fmt.Sprint(a.Value, " ", a.Description))
			}
			problem = strings.Join(words, " ")
		}
	case "Runtime.exceptionThrown":
		problem = e.ExceptionDetails.text()
	case "Log.entryAdded":
		if e.Entry.Level == "error" {
			problem = e.Entry.Text + " " + e.Entry.URL
		}
	case "Inspector.targetCrashed":
		problem = "the page crashed"
	}
	if problem == "" {
		return
	}
	p.mu.Lock()
	p.problems = append(p.problems, problem)
	p.mu.Unlock()
}

// quiet fails the test if anything red stands in the page's console.
func (p *page) quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.t.Errorf("the page's console: %s", problem)
	}
}

type exceptionDetails struct {
	Text      string
	Exception struct{ Description string }
}

func (e *exceptionDetails) text() string { return e.Text + " " + e.Exception.Description }

// evaluate runs an expression in the page, waits for it if it is a promise, and
// decodes its value, which must be JSON, into result unless that is nil.
func (p *page) evaluate(result any, expression string) error {
	answer, err := p.browser.call(p.session, "Runtime.evaluate", map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true,
		"userGesture": true,
	})
	if err != nil {
		return err
	}
	var value struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *exceptionDetails
	}
	if err := json.Unmarshal(answer, &value); err != nil {
		return err
	}
	if value.ExceptionDetails != nil {
		return fmt.Errorf("%.200s: %s", expression, value.ExceptionDetails.text())
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(value.Result.Value, result)
}

// get is evaluate for what must succeed.
func (p *page) get(result any, format string, args ...any) {
	p.t.Helper()
	if err := p.evaluate(result, fmt.Sprintf(format, args...)); err != nil {
		p.t.Fatal(err)
	}
}

// until waits until an expression is true. Before the page's script has run, and
// while another document is being loaded, it is not.
func (p *page) until(format string, args ...any) {
	p.t.Helper()
	condition := fmt.Sprintf(format, args...)
	// The page looks by itself, so that a change is seen within milliseconds.
	look := `new Promise((done) => {
		const end = performance.now() + 1000;
		const look = () => {
			let met = false;
			try { met = !!(` + condition + `); } catch {}
			if (met || performance.now() > end) done(met); else setTimeout(look, 2);
		};
		look();
	})`
	err := retry(browserPatience, func() error {
		var met bool
		err := p.evaluate(&met, look)
		if err == nil && !met {
			err = errors.New("not so")
		}
		return err
	})
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.t.Fatalf("waited %v for %s: %v; console: %q", browserPatience, condition, err, p.problems)
	}
}

// click presses and releases the mouse button on the first element that matches.
func (p *page) click(selector string) {
	p.t.Helper()
	var at struct{ X, Y float64 }
	p.get(&at, `(() => {
		const element = document.querySelector(%q);
		element.scrollIntoView({ block: "center", behavior: "instant" });
		const box = element.getBoundingClientRect();
		return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
	})()`, selector)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.command("Input.dispatchMouseEvent", map[string]any{
			"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1,
		})
	}
}

// typeInto replaces what stands in a field.
func (p *page) typeInto(selector, text string) {
	p.t.Helper()
	p.click(selector)
	p.get(nil, "document.querySelector(%q).select()", selector)
	p.command("Input.insertText", map[string]any{"text": text})
}

// width makes the window as wide as a screen of this kind.
func (p *page) width(pixels int) {
	p.t.Helper()
	p.command("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": pixels, "height": 844, "deviceScaleFactor": 1, "mobile": pixels < 500,
	})
}

// screenshot stores a picture where TEST_SCREENSHOTS says, for a person to see.
func (p *page) screenshot(name string) {
	p.t.Helper()
	dir := os.Getenv("TEST_SCREENSHOTS")
	if dir == "" {
		return
	}
	var picture struct{ Data []byte }
	p.must(&picture, p.session, "Page.captureScreenshot", map[string]any{"format": "png"})
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture.Data, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
