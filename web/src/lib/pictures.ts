// The pictures of a draft, kept by the browser: files do not fit where texts are kept. A browser that keeps
// nothing loses them at a reload, and the page draws its own.

/** A square of a picture: where its corner is, from 0 to 1 of what is left over, and how much it is enlarged. */
export interface Crop {
  x: number;
  y: number;
  zoom: number;
}

export interface Picture {
  file: Blob;
  crop: Crop;
}

const DATABASE = "foretell-pictures";
const STORE = "pictures";

function opened(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
}

async function run<Result>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<Result>): Promise<Result> {
  const database = await opened();
  try {
    return await new Promise((resolve, reject) => {
      const asked = act(database.transaction(STORE, mode).objectStore(STORE));
      asked.onsuccess = () => resolve(asked.result);
      asked.onerror = () => reject(asked.error);
    });
  } finally {
    database.close();
  }
}

/** Return the kept pictures by their keys. */
export async function readPictures(): Promise<Record<string, Picture>> {
  try {
    const [keys, pictures] = [await run("readonly", (store) => store.getAllKeys()), await run<Picture[]>("readonly", (store) => store.getAll())];
    return Object.fromEntries(keys.map((key, index) => [String(key), pictures[index] as Picture]));
  } catch {
    return {};
  }
}

/** Keep a picture, or forget it. */
export async function writePicture(key: string, picture: Picture | null): Promise<void> {
  try {
    if (picture === null) await run("readwrite", (store) => store.delete(key));
    else await run("readwrite", (store) => store.put(picture, key));
  } catch {
    return;
  }
}

export async function forgetPictures(): Promise<void> {
  try {
    await run("readwrite", (store) => store.clear());
  } catch {
    return;
  }
}
