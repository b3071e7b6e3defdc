"use strict";
// The wheel zooms around the pointer, dragging moves, a double click shows all.
(() => {
  const plot = document.getElementById("plot");
  if (!plot) return;
  const tip = document.getElementById("tip");
  const whole = plot.viewBox.baseVal.width, height = plot.viewBox.baseVal.height;
  let from = 0, span = whole, grabbed = null;
  const ns = Number(plot.dataset.ns) / whole;
  const us = (at) => (at * ns / 1e3).toLocaleString("en", { maximumSignificantDigits: 6 }) + " us";
  const show = () => {
    from = Math.min(Math.max(from, 0), whole - span);
    plot.setAttribute("viewBox", from + " 0 " + span + " " + height);
    const ticks = document.getElementById("axis").children;
    for (let tick = 0; tick < ticks.length; tick++)
      ticks[tick].textContent = us(from + span * tick / (ticks.length - 1));
  };
  const part = (event) => {
    const box = plot.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  };
  plot.addEventListener("wheel", (event) => {
    event.preventDefault();
    const at = from + part(event) * span;
    const wanted = span * Math.exp(event.deltaY / 400);
    span = Math.min(Math.max(wanted, whole / 1e6), whole);
    from = at - part(event) * span;
    show();
  }, { passive: false });
  plot.addEventListener("pointerdown", (event) => {
    grabbed = from + part(event) * span;
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointerup", () => { grabbed = null; });
  plot.addEventListener("pointermove", (event) => {
    if (grabbed !== null) {
      from = grabbed - part(event) * span;
      show();
    }
    const under = document.elementsFromPoint(event.clientX, event.clientY);
    const shape = under.find((each) => each.querySelector && each.parentNode === plot);
    const title = shape && shape.querySelector("title");
    tip.style.display = title ? "block" : "none";
    tip.textContent = title ? title.textContent : "";
    tip.style.left = event.clientX + 14 + "px";
    tip.style.top = event.clientY + 14 + "px";
  });
  plot.addEventListener("pointerleave", () => { tip.style.display = "none"; });
  plot.addEventListener("dblclick", () => { from = 0; span = whole; show(); });
  // #2ms..3ms in the address shows that part.
  const asked = /^#([\d.]+)ms\.\.([\d.]+)ms$/.exec(location.hash);
  if (asked) {
    from = asked[1] * 1e6 / ns;
    span = Math.min(Math.max(asked[2] * 1e6 / ns - from, whole / 1e6), whole);
  }
  show();
})();
