// Colours: as the system has them, until the reader chooses. Loaded before the page is drawn, so that nothing flashes.
"use strict";
(() => {
  const key = "querycloak-colours";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try { return localStorage.getItem(key); } catch { return null; }  // storage may be forbidden
  };
  let colours = chosen() ?? (dark.matches ? "dark" : "light");

  function show() {
    document.documentElement.dataset.colours = colours;
    const words = document.getElementById("theme-words");
    if (words) words.textContent = colours === "dark" ? "Use light colours" : "Use dark colours";
  }

  function change() {
    colours = colours === "dark" ? "light" : "dark";
    try { localStorage.setItem(key, colours); } catch { /* then it lasts as long as the page */ }
    show();
  }

  dark.addEventListener("change", () => {
    if (chosen() === null) { colours = dark.matches ? "dark" : "light"; show(); }
  });
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", change);
    show();
  });
  show();
})();
