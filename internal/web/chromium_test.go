package web_test

import (
	"bufio"
	"encoding/base64"
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

// browser is a headless Chromium that is spoken to over a pipe, in the protocol of its
// developer tools: JSON values with a zero byte behind each.
type browser struct {
	to      *os.File
	mu      sync.Mutex
	last    int
	waiting map[int]chan reply
	tabs    map[string]*tab // by session
	gone    chan struct{}
}

type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// patience is how long a page may take; the machine may be busy.
const patience = 20 * time.Second

var shared struct {
	sync.Mutex
	*browser
	end  func()
	skip string
}

// TestMain ends the browser that the tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if shared.end != nil {
		shared.end()
	}
	os.Exit(code)
}

// chromium is the browser of all tests; without one installed they are skipped.
func chromium(t *testing.T) *browser {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.browser == nil && shared.skip == "" {
		var err error
		if shared.browser, shared.end, err = launch(); err != nil {
			shared.skip = err.Error()
		}
	}
	if shared.skip != "" {
		t.Skip(shared.skip)
	}
	return shared.browser
}

func launch() (*browser, func(), error) {
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		return nil, nil, errors.New("no Chromium is installed: the console is not tested in a browser (apt-get install chromium)")
	}
	dir, err := os.MkdirTemp("", "muster-browser")
	if err != nil {
		return nil, nil, err
	}
	read, to, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	from, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	c := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--remote-debugging-pipe", "about:blank")
	c.ExtraFiles = []*os.File{read, write}                    // it reads 3 and writes 4
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}       // it has children
	c.Env = append(os.Environ(), "HOME="+dir, "LANG=C.UTF-8") // nothing of the user's
	if err := c.Start(); err != nil {
		return nil, nil, fmt.Errorf("starting %s: %w", program, err)
	}
	read.Close()
	write.Close()
	b := &browser{to: to, waiting: map[int]chan reply{}, tabs: map[string]*tab{}, gone: make(chan struct{})}
	go b.listen(from)
	end := func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // its group, which is ours alone
		_ = c.Wait()
		os.RemoveAll(dir)
	}
	if _, err := b.call("", "Browser.getVersion", nil); err != nil {
		end()
		return nil, nil, fmt.Errorf("%s does not answer: %w", program, err)
	}
	return b, end, nil
}

func (b *browser) listen(from *os.File) {
	defer close(b.gone)
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID        int
			SessionID string
			Method    string
			Params    json.RawMessage
			reply
		}
		if json.Unmarshal(data[:len(data)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		answer, t := b.waiting[m.ID], b.tabs[m.SessionID]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		if answer != nil && m.Method == "" {
			answer <- m.reply
		} else if t != nil {
			t.event(m.Method, m.Params)
		}
	}
}

func (b *browser) call(session, method string, params any) (json.RawMessage, error) {
	answer := make(chan reply, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.waiting[id] = answer
	if params == nil {
		params = map[string]any{}
	}
	message := map[string]any{"id": id, "method": method, "params": params}
	if session != "" {
		message["sessionId"] = session
	}
	data, err := json.Marshal(message)
	if err == nil {
		_, err = b.to.Write(append(data, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		if r.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		return r.Result, nil
	case <-b.gone:
		return nil, errors.New("the browser has ended")
	case <-time.After(patience):
		return nil, fmt.Errorf("%s: no answer in %v", method, patience)
	}
}

// tab is one page. What goes wrong on it is an error of the test.
type tab struct {
	t       *testing.T
	b       *browser
	session string
	mu      sync.Mutex
	wrong   []string
}

// screen is how a page is looked at.
type screen struct {
	width, height int
	scheme        string // light or dark
}

var desk = screen{1280, 800, "light"}

func open(t *testing.T, at screen, url string) *tab {
	t.Helper()
	b := chromium(t)
	p := &tab{t: t, b: b}
	var target struct{ TargetID, SessionID string }
	made, err := b.call("", "Target.createBrowserContext", nil)
	if err != nil {
		t.Fatal(err)
	}
	var own struct{ BrowserContextID string }
	p.read(made, &own)
	made, err = b.call("", "Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": own.BrowserContextID})
	if err != nil {
		t.Fatal(err)
	}
	p.read(made, &target)
	made, err = b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	if err != nil {
		t.Fatal(err)
	}
	p.read(made, &target)
	p.session = target.SessionID
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	t.Cleanup(func() {
		_, _ = b.call("", "Target.disposeBrowserContext", own) // the browser may have ended
		b.mu.Lock()
		delete(b.tabs, p.session)
		b.mu.Unlock()
		p.t = t
		p.tell()
	})
	for _, domain := range []string{"Page.enable", "Runtime.enable", "Log.enable"} {
		p.do(domain, nil)
	}
	p.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": senseless})
	p.do("Emulation.setTimezoneOverride", map[string]any{"timezoneId": "UTC"})
	p.look(at)
	p.visit(url)
	return p
}

// visit loads a page.
func (p *tab) visit(url string) {
	p.t.Helper()
	p.do("Page.navigate", map[string]any{"url": url})
	p.until("location.protocol === 'http:' && document.body")
}

// anew loads a page for another test, which finds nothing of what was there before.
func (p *tab) anew(t *testing.T, at screen, url string) {
	t.Helper()
	p.t = t
	t.Cleanup(p.tell)
	p.eval("localStorage.clear(), sessionStorage.clear()", nil)
	p.do("Page.navigate", map[string]any{"url": "about:blank"}) // else another address of the same page is no new load
	p.look(at)
	p.visit(url)
}

// tell makes errors of the test of what went wrong since it was last told.
func (p *tab) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wrong {
		p.t.Error("on the page: " + w)
	}
	p.wrong = nil
}

// senseless watches all that a page ever shows, texts and attributes, for values that no
// server sent: what it finds is an error of the page.
const senseless = `{
  const look = (text, where) => { const found = /.{0,40}(\bNaN|\bundefined\b|\bnull\b|Invalid Date|\[object ).{0,40}/.exec(text ?? ""); if (found) console.error("shows " + found[0] + " in " + where); };
  const all = (e) => { look(e.textContent, e.nodeName); for (const x of [e, ...(e.querySelectorAll?.("*") ?? [])]) for (const a of x.attributes ?? []) look(a.value, x.nodeName + " " + a.name); };
  new MutationObserver((list) => { for (const m of list) {
    if (m.type === "attributes") look(m.target.getAttribute(m.attributeName), m.target.nodeName + " " + m.attributeName);
    else if (m.type === "characterData") look(m.target.data, m.target.parentNode?.nodeName);
    else m.addedNodes.forEach(all);
  } }).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
}`

func (p *tab) read(data json.RawMessage, out any) {
	p.t.Helper()
	if err := json.Unmarshal(data, out); err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) do(method string, params any) json.RawMessage {
	p.t.Helper()
	r, err := p.b.call(p.session, method, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// event notes errors: scripts that fail, and what the policy refused. An answer that
// is an error is not one of the page's.
func (p *tab) event(method string, params json.RawMessage) {
	var e struct {
		Entry            struct{ Level, Source, Text string }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Type string
	}
	if json.Unmarshal(params, &e) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case method == "Runtime.exceptionThrown":
		p.wrong = append(p.wrong, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
	case method == "Log.entryAdded" && e.Entry.Level == "error" && e.Entry.Source != "network":
		p.wrong = append(p.wrong, e.Entry.Source+": "+e.Entry.Text)
	case method == "Runtime.consoleAPICalled" && e.Type == "error":
		p.wrong = append(p.wrong, "console.error "+string(params))
	}
}

func (p *tab) look(at screen) {
	p.t.Helper()
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": at.width, "height": at.height, "deviceScaleFactor": 1, "mobile": at.width < 600})
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": at.scheme}}})
}

// eval is the value of an expression of JavaScript; promises are waited for.
func (p *tab) eval(expression string, out any) {
	p.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	p.read(p.do("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}), &r)
	if r.ExceptionDetails != nil {
		p.t.Fatalf("%s: %s", expression, r.ExceptionDetails.Exception.Description)
	}
	if out != nil {
		p.read(r.Result.Value, out)
	}
}

// until waits for an expression to be true.
func (p *tab) until(expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var ok bool
		if p.eval("Boolean("+expression+")", &ok); ok {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("it never became true: %s\nthe page says:\n%s", expression, p.text())
		}
	}
}

// says waits for the page to show all of the texts.
func (p *tab) says(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		quoted, _ := json.Marshal(text)
		p.until("document.body.innerText.replace(/\\s+/g, ' ').includes(" + string(quoted) + ")")
	}
}

// turn goes to another view of the page that is open.
func (p *tab) turn(hash string) {
	p.t.Helper()
	quoted, _ := json.Marshal(hash)
	p.eval("new Promise((done) => { if (location.hash === "+string(quoted)+") return done(); addEventListener('hashchange', () => done(), {once: true}); location.hash = "+string(quoted)+"; })", nil)
}

func (p *tab) text() (text string) {
	p.t.Helper()
	p.eval("document.body.innerText.replace(/\\s+/g, ' ')", &text)
	return text
}

// key presses and releases a key.
func (p *tab) key(name string, code int) {
	p.t.Helper()
	text := map[string]string{"Enter": "\r"}[name]
	p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": name, "code": name, "windowsVirtualKeyCode": code, "text": text})
	p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name, "code": name, "windowsVirtualKeyCode": code})
}

// shot keeps a picture where MUSTER_SHOTS names a directory: for people to look at.
func (p *tab) shot(name string) {
	p.t.Helper()
	dir := os.Getenv("MUSTER_SHOTS")
	if dir == "" {
		return
	}
	var r struct{ Data string }
	p.read(p.do("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": strings.HasSuffix(name, "-whole")}), &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
