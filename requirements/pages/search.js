// Searches the sections of all pages; the list of them is fetched at the first letter.

const RESULTS_MAX = 20;
const AROUND = 60;
const field = document.getElementById("search");
const results = document.getElementById("results");
const root = document.documentElement.dataset.root;
let sections = null;

function fetchSections() {
  sections ??= fetch(`${root}search.json`).then((answer) => answer.json());
  return sections;
}

function score(section, words) {
  const [title, text] = [section.title.toLowerCase(), section.text.toLowerCase()];
  let points = 0;
  for (const word of words) {
    if (title.includes(word)) points += 10;
    else if (text.includes(word)) points += 1;
    else return 0;
  }
  return points;
}

function row(section, words) {
  const [line, link, part] = ["li", "a", "small"].map((name) => document.createElement(name));
  link.href = root + section.path;
  link.textContent = section.title;
  const at = Math.max(section.text.toLowerCase().indexOf(words[0]) - AROUND, 0);
  part.textContent = section.text.slice(at, at + 3 * AROUND);
  line.append(link, part);
  return line;
}

field.addEventListener("input", async () => {
  const words = field.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) {
    results.replaceChildren();
    return;
  }
  const found = (await fetchSections()).map((section) => [score(section, words), section]).filter(([points]) => points > 0);
  found.sort(([a], [b]) => b - a);
  if (field.value.toLowerCase().split(/\s+/).filter((word) => word !== "").join(" ") !== words.join(" ")) return;
  const rows = found.slice(0, RESULTS_MAX).map(([, section]) => row(section, words));
  if (rows.length === 0) {
    const none = document.createElement("li");
    none.textContent = "nothing found";
    rows.push(none);
  }
  results.replaceChildren(...rows);
});
field.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  field.value = "";
  results.replaceChildren();
});
