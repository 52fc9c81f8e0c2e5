//! A browser that a test asks what it shows: Chromium, through the pipe of its DevTools protocol.
//!
//! # Sources
//! Chromium, `--remote-debugging-pipe`: messages are JSON, each with a NUL behind it, to descriptor
//! 3 and from descriptor 4; the Chrome DevTools Protocol for what is in them.

use crate::counters::{here, path};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait of a test: far more than any machine needs, so that time decides nothing.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// One page in a browser of its own, which ends with the test.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    messages: u64,
    /// Session of the attached page.
    session: Option<String>,
    /// Complaints of the page and of the browser about it.
    complaints: Vec<Value>,
}

impl Browser {
    /// With an empty page; [`None`] where there is no Chromium.
    pub(crate) fn start(directory: &Path) -> Option<Browser> {
        if !here(&["chromium"]) {
            return None;
        }
        let flags = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
            --disable-background-networking --no-proxy-server --user-data-dir=profile";
        let line = format!(
            "exec chromium {flags} --remote-debugging-pipe 3<&0 4>&1 </dev/null >/dev/null 2>browser"
        );
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &line])
            .current_dir(directory)
            .env("PATH", path())
            .env("TMPDIR", directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = shell.spawn().expect("a shell");
        let (to, from) = (
            child.stdin.take().expect("a pipe"),
            BufReader::new(child.stdout.take().expect("a pipe")),
        );
        let mut browser =
            Browser { child, to, from, messages: 0, session: None, complaints: Vec::new() };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attached = browser.call(
            "Target.attachToTarget",
            &json!({"targetId": target["targetId"], "flatten": true}),
        );
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.ask(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The browser's answer, or what it says against the question.
    fn ask(&mut self, method: &str, parameters: &Value) -> Result<Value, Value> {
        self.messages += 1;
        let mut message = json!({"id": self.messages, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).expect("the browser answers");
            assert_eq!(answer.pop(), Some(0), "the browser has gone");
            let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
            if answer["id"] == self.messages {
                return if answer["error"].is_null() {
                    Ok(answer["result"].take())
                } else {
                    Err(answer)
                };
            }
            if let Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") =
                answer["method"].as_str()
            {
                self.complaints.push(answer["params"].take());
            }
        }
    }

    /// Opens a page in a window of that width.
    pub(crate) fn open(&mut self, url: &str, width: u32) {
        self.resize(width);
        self.call("Page.navigate", &json!({"url": url}));
        self.wait("document.readyState === 'complete'");
    }

    /// Gives the window another width.
    pub(crate) fn resize(&mut self, width: u32) {
        let size =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 640});
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(crate) fn is(&mut self, expression: &str) -> Value {
        self.evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn evaluate(&mut self, expression: &str) -> Result<Value, Value> {
        let mut answer = self
            .ask("Runtime.evaluate", &json!({"expression": expression, "returnByValue": true}))?;
        if answer["exceptionDetails"].is_null() {
            Ok(answer["result"]["value"].take())
        } else {
            Err(answer)
        }
    }

    /// Waits until an expression holds in the page, which may load itself anew meanwhile: then
    /// there is nothing to ask for a moment.
    #[track_caller]
    pub(crate) fn wait(&mut self, expression: &str) {
        let end = Instant::now() + LONG;
        loop {
            let answer = self.evaluate(expression);
            if answer == Ok(true.into()) {
                return;
            }
            assert!(
                Instant::now() < end,
                "{expression}: {answer:?}: {}",
                self.is("document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Complaints since the last call.
    pub(crate) fn complaints(&mut self) -> Vec<Value> {
        // Whatever came before the answer has come.
        self.is("1");
        std::mem::take(&mut self.complaints)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
