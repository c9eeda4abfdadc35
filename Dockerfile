# The operator as one static file on an image without anything else.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /source
COPY . .
RUN cargo build --profile dist --locked --no-default-features --features cluster --package training-operator

FROM gcr.io/distroless/static:nonroot
COPY --from=build /source/target/dist/training-operator /training-operator
USER 65532:65532
ENTRYPOINT ["/training-operator"]
CMD ["run"]
