//! `pods/exec` and `pods/attach`: commands in containers, and the output of containers, over a WebSocket.

use std::future::Future;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use kube_memory::{SubresourceRequest, SubresourceResponse, failure_response};
use local_node::{ContainerError, ExecCommand, LogOptions, OutputReader, Stream};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::channels::{ClientMessage, STATUS, STDERR, STDOUT, accept, exit_status, message};
use super::container::choose;
use super::query::Options;
use super::{Pods, bad_request, name_of, permit};

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The maximum size of a message of a client.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// The number of bytes of output in one message.
const OUTPUT_BYTES: usize = 32 * 1024;

/// Runs a command in a container.
pub(super) async fn exec(pods: Pods, mut request: SubresourceRequest) -> SubresourceResponse {
    let (namespace, name) = name_of(&request);
    let (command, container, stdin) = {
        let options = Options::parse(request.parts.uri.query());
        let container = match container(&request, &options) {
            Ok(container) => container,
            Err(response) => return *response,
        };
        let command: Vec<String> = options.all("command").map(str::to_owned).collect();
        (command, container, options.flag("stdin"))
    };
    if command.is_empty() {
        return bad_request("you must specify at least 1 command for the container");
    }
    let permit = match permit(&pods.sessions) {
        Ok(permit) => permit,
        Err(response) => return *response,
    };
    let started = pods
        .containers
        .exec(&namespace, &name, &container, &command, stdin);
    if matches!(started, Err(ContainerError::NotRunning)) {
        return not_running(&container);
    }
    upgrade(&mut request, |socket| async move {
        match started {
            Ok(command) => run_command(socket, command).await,
            // As a shell reports a command that it does not find.
            Err(error) => {
                let (mut sink, _) = socket.split();
                let problem = message(STDERR, format!("{error}\n").as_bytes());
                let _ = sink.send(Message::Binary(problem.into())).await;
                finish(sink, &exit_status(127)).await;
            }
        }
        drop(permit);
    })
}

/// Sends the further output of a container. Input is not accepted, because the containers' commands have none.
pub(super) async fn attach(pods: Pods, mut request: SubresourceRequest) -> SubresourceResponse {
    let (namespace, name) = name_of(&request);
    let container = {
        let options = Options::parse(request.parts.uri.query());
        match container(&request, &options) {
            Ok(container) => container,
            Err(response) => return *response,
        }
    };
    let permit = match permit(&pods.sessions) {
        Ok(permit) => permit,
        Err(response) => return *response,
    };
    let options = LogOptions {
        follow: true,
        tail_lines: Some(0),
        ..LogOptions::default()
    };
    let output = pods
        .containers
        .output(&namespace, &name, &container, false, &options)
        .await;
    let Ok(reader) = output else {
        return not_running(&container);
    };
    upgrade(&mut request, |socket| async move {
        send_output(socket, reader).await;
        drop(permit);
    })
}

fn container(
    request: &SubresourceRequest,
    options: &Options<'_>,
) -> Result<String, Box<SubresourceResponse>> {
    if options.flag("tty") {
        let problem = "a local cluster has no terminals for pods; leave out --tty (-t)";
        return Err(Box::new(bad_request(problem)));
    }
    choose(request.object.value(), options.get("container"))
        .map_err(|problem| Box::new(bad_request(&problem)))
}

fn not_running(container: &str) -> SubresourceResponse {
    failure_response(
        500,
        "InternalError",
        &format!("container not found ({container:?})"),
    )
}

/// Accepts the WebSocket, and runs a session on it.
fn upgrade<F>(
    request: &mut SubresourceRequest,
    session: impl FnOnce(Socket) -> F + Send + 'static,
) -> SubresourceResponse
where
    F: Future<Output = ()> + Send,
{
    let headers = match accept(&request.parts.headers) {
        Ok(headers) => headers,
        Err(problem) => return bad_request(&problem),
    };
    let Some(upgrade) = request.parts.extensions.remove::<OnUpgrade>() else {
        return bad_request("the connection cannot be upgraded; use HTTP/1.1");
    };
    tokio::spawn(async move {
        // A client that left needs no session.
        let Ok(connection) = upgrade.await else { return };
        let mut limits = WebSocketConfig::default();
        limits.max_message_size = Some(MAX_MESSAGE_BYTES);
        limits.max_frame_size = Some(MAX_MESSAGE_BYTES);
        let io = TokioIo::new(connection);
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(limits)).await;
        session(socket).await;
    });
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().extend(headers);
    response
}

async fn run_command(socket: Socket, mut command: ExecCommand) {
    let (mut sink, source) = socket.split();
    let (mut stdout, mut stderr) = (command.stdout.take(), command.stderr.take());
    let mut input = tokio::spawn(forward_input(source, command.stdin.take()));
    let mut ended = tokio::spawn(command.wait());
    let (mut from_stdout, mut from_stderr) = (vec![0; OUTPUT_BYTES], vec![0; OUTPUT_BYTES]);
    while stdout.is_some() || stderr.is_some() {
        let sent = tokio::select! {
            length = read(&mut stdout, &mut from_stdout) => message(STDOUT, &from_stdout[..length]),
            length = read(&mut stderr, &mut from_stderr) => message(STDERR, &from_stderr[..length]),
            _ = &mut input => {
                // The client has left. The command is killed with its task.
                ended.abort();
                return;
            }
        };
        if sent.len() > 1 && sink.send(Message::Binary(sent.into())).await.is_err() {
            ended.abort();
            return;
        }
    }
    tokio::select! {
        code = &mut ended => finish(sink, &exit_status(code.unwrap_or(137))).await,
        _ = &mut input => ended.abort(),
    }
    input.abort();
}

/// Reads from a pipe. A pipe that has ended is taken away, and then the future never completes.
async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    let Some(open) = pipe else {
        return std::future::pending().await;
    };
    let length = open.read(buffer).await.unwrap_or(0);
    if length == 0 {
        *pipe = None;
    }
    length
}

/// Passes the client's input to the command. Returns when the client has left.
async fn forward_input(mut source: SplitStream<Socket>, mut stdin: Option<ChildStdin>) {
    while let Some(Ok(received)) = source.next().await {
        let bytes = match received {
            Message::Binary(bytes) => bytes,
            // The Python client sends texts for input that is one.
            Message::Text(text) => text.into(),
            Message::Close(_) => return,
            _ => continue,
        };
        match ClientMessage::parse(&bytes) {
            ClientMessage::Stdin(data) => {
                if let Some(open) = &mut stdin
                    && open.write_all(data).await.is_err()
                {
                    stdin = None;
                }
            }
            ClientMessage::StdinClosed => stdin = None,
            ClientMessage::Ignored => {}
        }
    }
}

async fn send_output(socket: Socket, mut reader: OutputReader) {
    let (mut sink, source) = socket.split();
    let mut left = tokio::spawn(forward_input(source, None));
    loop {
        let entries = tokio::select! {
            entries = reader.next() => entries,
            _ = &mut left => return,
        };
        let entries = match entries {
            Ok(Some(entries)) => entries,
            Ok(None) => break,
            Err(error) => {
                let failed = json!({
                    "metadata": {}, "status": "Failure", "reason": "InternalError", "message": error.to_string(),
                });
                finish(sink, &failed).await;
                return;
            }
        };
        for entry in entries {
            let channel = match entry.stream {
                Stream::Stdout => STDOUT,
                Stream::Stderr => STDERR,
            };
            let sent = message(channel, &entry.bytes);
            if sink.send(Message::Binary(sent.into())).await.is_err() {
                return;
            }
        }
    }
    finish(sink, &exit_status(0)).await;
    left.abort();
}

/// Sends the status and ends the session.
async fn finish(mut sink: SplitSink<Socket, Message>, status: &Value) {
    let status = message(STATUS, status.to_string().as_bytes());
    // A client that has left needs no status.
    let _ = sink.send(Message::Binary(status.into())).await;
    // Without a code, kubectl takes the end for a failure.
    let close = CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::default(),
    };
    let _ = sink.send(Message::Close(Some(close))).await;
    let _ = sink.close().await;
}
