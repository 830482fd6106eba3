// Active seconds on the pair: the page is visible, has the focus, and somebody moves. Loaded before desk.js.

"use strict";

const clock = {
  IDLE_AFTER: 60000,
  MOST: 2000, // between two ticks; after a longer gap timers were held back or the machine slept
  seconds: 0,
  lastSign: performance.now(),
  lastTick: performance.now(),
  active() {
    return document.visibilityState === "visible" && document.hasFocus() && performance.now() - this.lastSign < this.IDLE_AFTER;
  },
  restart() {
    this.seconds = 0;
    this.lastTick = performance.now();
  },
  tick() {
    const now = performance.now();
    const active = this.active();
    if (active) this.seconds += Math.min(this.MOST, now - this.lastTick) / 1000;
    this.lastTick = now;
    return active;
  },
  // A gap before this moment was nobody's time, whatever a tick finds now.
  back() {
    this.lastTick = performance.now();
  },
  sign() {
    this.lastSign = performance.now();
  },
};
for (const name of ["keydown", "pointermove", "pointerdown", "wheel", "scroll", "touchstart"]) {
  window.addEventListener(name, () => clock.sign(), { passive: true, capture: true });
}
document.addEventListener("visibilitychange", () => clock.back());
window.addEventListener("focus", () => clock.back());
