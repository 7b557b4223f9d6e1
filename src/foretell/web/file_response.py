"""The answer with a file that was read at the start, compressed for those who accept it."""

from litestar import Response

from foretell.edge.codec import AnyRequest
from foretell.web.build_files import BuildFile


def file_response(
    request: AnyRequest, file: BuildFile, policy: str | None = None
) -> Response[bytes]:
    """Return a file; a page has its content security policy."""
    headers = {"cache-control": file.cache_control, "vary": "accept-encoding"}
    if policy is not None:
        headers["content-security-policy"] = policy
    content, wanted = file.content, request.headers.get("accept-encoding", "")
    if "gzip" in wanted and file.compressed is not None:
        headers["content-encoding"] = "gzip"
        content = file.compressed
    return Response(content, media_type=file.media_type, headers=headers)
