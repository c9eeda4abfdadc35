//! A layer around the requests of a client.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{Method, Request, Response, StatusCode, Uri};
use tower::{BoxError, Layer, Service};

/// A view of all requests and of their responses.
pub(super) trait Observer: Clone + Send + 'static {
    /// The part of a request that is kept until its response.
    type Request: Send;

    /// Observes a request before it is sent.
    ///
    /// # Errors
    /// The request must not be sent.
    fn request(&self, method: &Method, uri: &Uri) -> Result<Self::Request, BoxError>;

    /// Observes the status code of a response. `code` is `None` if the request failed; `sent` is the time of the request.
    fn response(&self, request: Self::Request, sent: Instant, code: Option<StatusCode>);
}

/// The layer of an observer, and the service below it.
#[derive(Clone, Debug)]
pub(super) struct Around<O, S = ()> {
    observer: O,
    inner: S,
}

impl<O: Observer> Around<O> {
    pub(super) fn new(observer: &O) -> Self {
        Self {
            observer: observer.clone(),
            inner: (),
        }
    }
}

impl<O: Observer, S> Layer<S> for Around<O> {
    type Service = Around<O, S>;

    fn layer(&self, inner: S) -> Around<O, S> {
        Around {
            observer: self.observer.clone(),
            inner,
        }
    }
}

impl<O: Observer, S, A, B> Service<Request<A>> for Around<O, S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let observed = match self.observer.request(request.method(), request.uri()) {
            Ok(observed) => observed,
            Err(error) => return Box::pin(async move { Err(error) }),
        };
        let (observer, sent) = (self.observer.clone(), Instant::now());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into);
            let code = answer.as_ref().ok().map(Response::status);
            observer.response(observed, sent, code);
            answer
        })
    }
}
