"use strict";
(() => {
  const maps = JSON.parse(document.getElementById("symattn-weights").textContent);

  const softmax = (scores, extras, temperature) => {
    const kept = scores.filter((s) => s !== null).concat(extras);
    if (!kept.length) return scores.map(() => null);
    const largest = Math.max(...kept.map((s) => s / temperature));
    const e = (s) => Math.exp(s / temperature - largest);
    const total = kept.reduce((sum, s) => sum + e(s), 0);
    return scores.map((s) => (s === null ? null : e(s) / total));
  };

  const printed = (x, digits, mark) => {
    if (x === null) return "·";
    const small = x > 0 && x < 0.5 * 10 ** -(digits > 2 ? digits - 1 : digits);
    return (small ? x.toExponential(Math.max(digits, 2) - 1) : x.toFixed(digits)).replace("-", "−").replace(".", mark);
  };

  const numbers = (rows) => rows.map((row) => row.map((x) => (x === null ? null : Number(x))));

  for (const box of document.querySelectorAll(".symattn .map")) {
    const form = box.querySelector("form.knobs");
    if (!form) continue;
    const map = maps[box.dataset.map];
    const heads = map.heads.map((h) => ({
      scores: numbers(h.scores), weights: numbers(h.weights), extras: numbers(h.extras),
    }));
    const slider = form.querySelector(".temperature");
    const offset = form.querySelector(".offset");
    const mode = form.querySelector(".mode");
    const resting = mode.textContent;
    const figures = [...box.querySelectorAll("figure")];
    const still = figures.map((f) => [f.querySelector("table").innerHTML, f.querySelector(".arrows")?.innerHTML]);

    const seen = (kind, head, i, j) =>
      kind === "own" ? head.weights[i][j] !== null : kind === "none" || j <= i + Number(offset.value);

    const weights = (head, kind, temperature) =>
      head.scores.map((row, i) =>
        softmax(row.map((s, j) => (seen(kind, head, i, j) ? s : null)), head.extras[i], temperature));

    let furthest = 0;
    for (const head of heads) {
      weights(head, "own", 1).forEach((row, i) => row.forEach((x, j) => {
        if (x !== null) furthest = Math.max(furthest, Math.abs(x - head.weights[i][j]));
      }));
    }

    const cell = (td, x) => {
      td.className = x === null ? "no" : "";
      td.style.setProperty("--a", x ?? 0);
      td.textContent = printed(x, map.digits, map.mark);
    };

    const draw = (figure, table) => {
      const rows = [...figure.querySelector("table").rows].slice(1);
      table.forEach((row, i) => row.forEach((x, j) => cell(rows[i].cells[j + 1], x)));
      const arrows = figure.querySelector(".arrows");
      if (!arrows) return;
      table[map.followed].forEach((x, j) => {
        const g = arrows.querySelector(`[data-key="${j}"]`);
        g.setAttribute("class", x === null ? "no" : "");
        g.querySelector("path").setAttribute("stroke-width", x === null ? 0 : 0.4 + 14 * x);
        g.querySelector(".v").textContent = printed(x, map.digits, map.mark);
      });
      const now = figure.querySelectorAll(".now");
      table[map.followed].forEach((x, j) => { now[j].textContent = printed(x, map.digits, map.mark); });
    };

    const update = () => {
      const temperature = 2 ** Number(slider.value);
      const kind = form.querySelector("input[type=radio]:checked")?.value ?? "own";
      const said = Number(temperature.toPrecision(3)).toString();
      slider.setAttribute("aria-valuetext", "temperature " + said);
      form.querySelector("output[for=" + slider.id + "]").textContent = said;
      if (offset) {
        offset.disabled = kind !== "causal";
        form.querySelector("output[for=" + offset.id + "]").textContent = offset.value;
      }
      const moved = temperature !== 1 || kind !== "own";
      figures.forEach((figure, k) => {
        if (moved) {
          draw(figure, weights(heads[k], kind, temperature));
        } else {
          figure.querySelector("table").innerHTML = still[k][0];
          if (still[k][1]) figure.querySelector(".arrows").innerHTML = still[k][1];
        }
        const two = figure.querySelector(".two");
        if (two) two.parentElement.hidden = !moved;
      });
      const mask = kind === "causal" ? ", causal mask with offset " + offset.value : kind === "none" ? ", no mask" : "";
      mode.textContent = moved
        ? `Estimated (float64 in the browser) at temperature ${said}${mask}. At temperature 1 and as defined, this browser is `
          + `within ${furthest.toExponential(1)} of the enclosed numbers.`
        : resting;
      box.classList.toggle("estimated", moved);
    };

    form.addEventListener("input", update);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(update));
    form.hidden = false;
    form.reset();
  }
})();
