// Formulas as JSON on standard input, [{tex, display}]; what KaTeX says against each, or null, as JSON on standard output.
"use strict";
const katex = require(process.argv[2]);
const formulas = JSON.parse(require("fs").readFileSync(0, "utf8"));
const said = formulas.map(({ tex, display }) => {
  try {
    katex.renderToString(tex, { throwOnError: true, strict: "error", displayMode: display, output: "mathml" });
    return null;
  } catch (error) {
    return String(error.message || error);
  }
});
process.stdout.write(JSON.stringify(said));
