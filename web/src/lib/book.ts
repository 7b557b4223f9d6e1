export { type Book, EMPTY_BOOK, type Level, type RawBook, type RawLevel, type Walk, bookOf, midpoint, walk, withLevel } from "foretell-client";
