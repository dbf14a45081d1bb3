// UNBUILT: an example for Android projects. It was written from the documentation and never run; see docs/android.md for what is tested.
//
// A library module of your app. The Kotlin sources are those that scripts/test-kotlin builds and tests on a desktop JVM, and those beside
// this file, which were never built. ../../.. is the root of this repository, whose CMakeLists.txt makes libmica_jni.so; it needs
// jansson, PCRE2 and utf8proc for Android, found through pkg-config.
plugins {
    id("com.android.library")
    kotlin("android")
}

android {
    namespace = "mica"
    compileSdk = 34
    defaultConfig {
        minSdk = 26
        ndk { abiFilters += "arm64-v8a" }
        externalNativeBuild {
            cmake {
                targets += "mica_jni"
                arguments += listOf("-DMICA_TESTS=OFF", "-DMICA_SERVER=OFF", "-DMICA_ROUTER=OFF", "-DMICA_OPS=OFF", "-DMICA_WERROR=OFF")
            }
        }
        consumerProguardFiles("consumer-rules.pro")
    }
    externalNativeBuild { cmake { path = file("../../../CMakeLists.txt") } }
    sourceSets["main"].kotlin.srcDirs("src/main/kotlin", "../src/main/kotlin")
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_17
        targetCompatibility = JavaVersion.VERSION_17
    }
    androidResources { noCompress += "gguf" } // an asset is mapped from the APK only if it is stored as it is
}

kotlin { jvmToolchain(17) }

dependencies {
    api("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.11.0")
}
