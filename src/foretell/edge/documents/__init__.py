"""The API documents: OpenAPI of every HTTP API, AsyncAPI of the streams, and the page that shows them."""
